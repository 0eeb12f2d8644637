"""Reads cost the same however long the list is, and onboarding costs little for each member."""

import pytest

from projects.commands import add_environment, add_member, onboard_project
from projects.commands.inputs import NewMember
from tests.support.api import Api
from tests.support.queries import within_budget
from tests.support.world import World, world

pytestmark = pytest.mark.slow


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


@pytest.fixture
def api(w):
    for index in range(12):
        add_environment(w.system(), project_id=w.project, slug=f"lab-{index}")
        add_member(w.system(), project_id=w.project, member=NewMember(f"ann-{index}", ("Observer",)))
    caller = Api.as_(w.observer)
    caller.get("/factory/projects")  # what is read once in a process
    return caller


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("GET /projects", "/factory/projects"),
        ("GET /projects/{id}", "/factory/projects/{project}"),
        ("GET /projects/{id}/environments", "/factory/projects/{project}/environments"),
        ("GET /projects/{id}/members", "/factory/projects/{project}/members"),
    ],
)
def test_reads_stay_within_their_budgets(w, api, name, path):
    with within_budget(name):
        assert api.get(path.format(project=w.project)).status_code == 200


def test_onboarding_stays_within_its_budget(w):
    with within_budget("onboard_project, 10 members"):
        onboard_project(
            w.tenant_admin,
            slug="second",
            name="Second",
            environments=[],
            members=[NewMember(f"ann-{index}", ("Observer",)) for index in range(10)],
        )
