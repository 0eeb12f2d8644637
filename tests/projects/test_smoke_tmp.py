from tests.support.world import world
from projects.selectors import members, places_of_user
from factory.tenancy import reading
def test_w(tenant_id):
    w = world(tenant_id)
    with reading(w.reviewer):
        print(members(w.project, ["Reviewer"]))
    print(w)
    print(places_of_user(w.tenant_admin.actor.subject))
