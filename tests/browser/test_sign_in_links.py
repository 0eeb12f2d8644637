"""A member who was added comes to a password and into the console, at every width, as the pages say."""

from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from django.urls import reverse

from factory.kernel.tenancy import reading
from projects.commands import add_member
from projects.commands.inputs import NewMember
from projects.models import Membership
from tests.browser.conftest import Visit
from tests.browser.test_every_page import sound
from tests.support.running import House

pytestmark = pytest.mark.browser
PASSWORD = "a-long-enough-passphrase"


@pytest.mark.parametrize("width", [390, 1440])
def test_who_was_added_sets_a_password_by_the_link_and_signs_in(
    visit: Visit, house: House, width: int
) -> None:
    w = house.world
    address = f"ann@{w.tenant}.test"
    made = add_member(
        w.workspace_admin, project_id=w.project, member=NewMember(address, ("Reviewer",), display_name="Ann")
    )
    with reading(w.system()):
        row = Membership.objects.get(pk=made)
    member = reverse("admin:projects_membership_change", args=[row.pk])
    admin = visit(width=width).sign_in(w.workspace_admin)
    admin.open(member)
    admin.reads(f"With a password, as {address}, once they have set one.")
    admin.reads(f"manage.py sign_in_link {address}")
    sound(admin)

    told = StringIO()
    call_command("sign_in_link", address, stdout=told, stderr=StringIO())
    link = told.getvalue().strip().removeprefix(settings.FACTORY_PUBLIC_URL)
    ann = visit(width=width)
    ann.open(link)
    ann.reads(f"You sign in as {address}")
    sound(ann)
    ann.part("#id_new_password1").fill(PASSWORD)
    ann.part("#id_new_password2").fill(PASSWORD)
    ann.page.get_by_role("button", name="Set the password").click()
    ann.reads("Your password is set. Sign in with it.")
    ann.page.get_by_label("Email").fill(address.upper())
    ann.page.get_by_label("Password").fill(PASSWORD)
    ann.page.get_by_role("button", name="Log in").click()
    ann.page.wait_for_url(ann.web + "/admin/")
    late = visit(width=width)
    late.expected.add(404)
    late.open(link)
    late.reads("This link is good no more")
    sound(late)
    admin.open(member)
    admin.reads(f"With a password, as {address}.")
