import pytest

from tests.registry.support import Registry


@pytest.fixture(autouse=True)
def _local_repositories(tmp_path, settings):
    settings.FACTORY_GIT_LOCAL_ROOTS = [str(tmp_path)]


@pytest.fixture
def r(tenant_id, tmp_path):
    """A tenant with a policy, people and a Git repository."""
    return Registry(tenant_id, tmp_path)
