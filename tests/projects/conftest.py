"""A world of the test's own, and identity providers beside ours."""

import pytest

from tests.projects.people import IDP, OTHER
from tests.support.approvals import staged
from tests.support.issuers import outside
from tests.support.world import World, world


@pytest.fixture
def w(tenant_id) -> World:
    return world(tenant_id)


@pytest.fixture
def idp(tmp_path):
    with outside(tmp_path, IDP) as (one,):
        yield one


@pytest.fixture
def two(tmp_path):
    with outside(tmp_path, IDP, OTHER) as both:
        yield both


@pytest.fixture
def stage():
    with staged() as it:
        yield it
