import pytest

from tests.security.scene import Scene, build


@pytest.fixture(scope="session")
def scene() -> Scene:
    """Made once: what is tried on it is refused, and leaves it as it was."""
    return build()
