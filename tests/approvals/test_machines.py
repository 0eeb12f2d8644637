"""A machine never decides: on no path, by no role, and not for somebody else."""

import os
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from approvals.errors import MachineNeverDecides, NotEligible, SeparationOfDuties
from approvals.selectors import counted_votes, eligible_people, mine, votes_of, who_may_decide
from factory.embedded.provision import connect, with_database
from factory.evidence.auditor import invariants
from factory.evidence.schema.readiness import compared
from factory.kernel.context import system
from factory.kernel.tenancy import reading
from projects.commands import add_member, change_member, register_service_account
from projects.commands.inputs import NewMember
from projects.errors import DelegateNotMember, RoleOfPeople
from projects.models import Membership
from tests.approvals.test_decisions import decide, refused
from tests.support.api import Api, problem
from tests.support.approvals import asking
from tests.support.corruption import found_by
from tests.support.delegations import lend
from tests.support.evidence import counts, violations
from tests.support.own_database import own_database
from tests.support.superuser import tampering, without_walls
from tests.support.world import context_of, subject_of

OF_PEOPLE = ["Reviewer", "WorkspaceAdmin", "PlatformAdmin"]


def membership(w, subject) -> Membership:
    with reading(w.system()):
        return Membership.objects.get(subject=subject, project=w.project)


def as_machine(ctx):
    """The person's own standing, by a token that says it is a machine's."""
    return replace(ctx, actor=replace(ctx.actor, kind="service"))


@pytest.mark.parametrize("role", OF_PEOPLE)
def test_no_service_account_is_registered_with_a_role_by_which_one_decides(asker, role):
    w, before = asker.world, counts(asker.house)
    with pytest.raises(RoleOfPeople) as no:
        register_service_account(
            w.platform_admin if role == "PlatformAdmin" else w.workspace_admin,
            project_id=None if role == "PlatformAdmin" else w.project,
            slug="bot",
            owner=w.tenant_admin.actor.subject,
            roles=("Observer", role),
        )
    assert (no.value.code, no.value.http_status) == ("role-of-people", 422)
    assert [fault.pointer for fault in no.value.errors] == ["/roles/1"]
    assert counts(asker.house)[:2] == before[:2]


@pytest.mark.parametrize("role", OF_PEOPLE[:2])
def test_no_membership_of_a_service_account_is_begun_or_changed_to_such_a_role(asker, role):
    w = asker.world
    own = membership(w, w.service.actor.subject)
    with pytest.raises(RoleOfPeople):
        change_member(w.workspace_admin, membership_id=own.id, version=own.version, roles=(role,), grants=())
    add_member(
        w.system(), project_id=None, member=NewMember(subject_of(w.tenant, "requester"), ("Observer",))
    )
    with pytest.raises(RoleOfPeople):
        add_member(w.system(), project_id=None, member=NewMember(w.service.actor.subject, (role,)))
    assert membership(w, w.service.actor.subject).roles == ["Requester"]


def test_neither_the_api_nor_the_command_line_gives_a_machine_such_a_role(asker):
    w = asker.world
    own = membership(w, w.service.actor.subject)
    answer = Api.as_(w.workspace_admin).call(
        "PATCH",
        f"/factory/projects/{w.project}/members/{own.id}",
        {"roles": ["Reviewer"], "version": own.version},
    )
    told = problem(answer)
    assert (told["status"], told["type"].rpartition("/")[2]) == (422, "role-of-people")
    with pytest.raises(CommandError):
        call_command(
            "onboard",
            f"--tenant={w.tenant}",
            "--project=second",
            "--member=ann@example.org=WorkspaceAdmin",
            "--service-account=bot:ann@example.org=Reviewer",
        )


def test_nothing_is_lent_to_a_machine_or_by_one(asker):
    w = asker.world
    with pytest.raises(DelegateNotMember):
        lend(w.reviewer, w.service)
    assert (
        Api.as_(w.service)
        .post(
            f"/factory/projects/{w.project}/delegations",
            {
                "role": "Requester",
                "delegate": w.reviewer.actor.subject,
                "expiresAt": "2999-01-01T00:00:00Z",
                "reason": "x",
            },
            Idempotency_Key=str(uuid4()),
        )
        .status_code
        == 403
    )


@pytest.mark.parametrize("answer", ["approve", "reject", "request_changes"])
def test_a_machines_token_decides_nothing_even_of_a_reviewer(asker, answer):
    view = asker.ask()
    with pytest.raises(MachineNeverDecides) as no:
        decide(as_machine(asker.world.reviewer), view, answer, reason="beep")
    assert (no.value.code, no.value.http_status) == ("machine-never-decides", 403)
    refused(asker, "machine-never-decides")
    assert asker.view(view.id).state == "Pending"


def test_a_machines_token_breaks_no_glass_and_casts_no_vote(asker):
    view = asker.ask()
    with pytest.raises(MachineNeverDecides):
        decide(as_machine(asker.world.platform_admin), view, break_glass=True, reason="no human was here")
    several = replace(asker.again(), policy=asker.ruled(quorum=2)).ask()
    with pytest.raises(MachineNeverDecides):
        decide(as_machine(asker.world.reviewer), several)
    assert asker.view(several.id).votes == 0


def test_the_role_and_the_separation_of_duties_are_judged_first(asker):
    w = asker.world
    view = asker.ask(requested_by=w.reviewer.actor.subject, requester_person=w.reviewer.actor.person)
    with pytest.raises(NotEligible):
        decide(as_machine(w.operator), view)
    with pytest.raises(SeparationOfDuties):
        decide(as_machine(w.reviewer), view)


def test_nothing_waits_for_a_machine(asker):
    asker.ask()
    with reading(asker.house):
        assert mine(asker.world.reviewer).count() == 1
        assert mine(as_machine(asker.world.reviewer)).count() == 0


def test_the_api_refuses_a_decision_by_a_token_of_a_client(asker):
    view, reviewer = asker.ask(), asker.world.reviewer
    body = {"decision": "approve", "version": view.version, "proposalHash": view.proposal_hash}
    answer = Api.as_(reviewer, service=True).post(f"/factory/approvals/{view.id}/decision", body)
    assert problem(answer)["type"].rpartition("/")[2] == "machine-never-decides"


RULES = [
    ("projects_membership", "membership_machine_never_decides"),
    ("projects_delegation", "delegation_between_people"),
    ("approvals_approvalrequest", "approval_decided_by_people"),
    ("approvals_waiver", "waiver_decided_by_people"),
]
BEFORE = """
    ALTER TABLE projects_membership DISABLE TRIGGER USER;
    UPDATE projects_membership SET roles = CASE WHEN project_id IS NULL THEN '{PlatformAdmin}'
        ELSE '{Requester,Reviewer}' END::varchar[] WHERE kind = 'service';
    ALTER TABLE projects_membership ENABLE ALWAYS TRIGGER pinned_columns;
    ALTER TABLE projects_membership ENABLE ALWAYS TRIGGER journal_required;
"""


DAMAGE = [
    (
        "approvals_approvalrequest",
        "UPDATE approvals_approvalrequest SET decided_by = %(bot)s WHERE id = %(id)s",
    ),
    (
        "approvals_vote",
        "INSERT INTO approvals_vote (id, tenant_id, approval_id, voter, person, acting_for, version, "
        "proposal_hash, reason, voted_at) SELECT gen_random_uuid(), tenant_id, id, %(bot)s, 'ann', '', "
        "version, proposal_hash, '', clock_timestamp() FROM approvals_approvalrequest WHERE id = %(id)s",
    ),
]


@pytest.mark.parametrize(("table", "sql"), DAMAGE)
def test_the_auditor_finds_what_a_machine_decided_or_voted(asker, table, sql):
    view = decide(asker.world.reviewer, asker.ask())
    values = {"id": view.id, "bot": asker.world.service.actor.subject}
    with tampering() as cursor:
        if table == "approvals_approvalrequest":
            cursor.execute("ALTER TABLE approvals_approvalrequest DISABLE TRIGGER pinned_columns")
        with pytest.raises(psycopg.errors.CheckViolation), cursor.connection.transaction():
            cursor.execute(sql.encode(), values)
        without_walls(cursor, table, *(["vote_of_people"] if table == "approvals_vote" else []))
        assert found_by("D12", cursor, asker.world.tenant) == []
        cursor.execute(sql.encode(), values)
        assert found_by("D12", cursor, asker.world.tenant)


@pytest.fixture
def before(tenant_id):
    """A step that asks, where a service account is a Reviewer here and a PlatformAdmin of the tenant, as it
    could be before the migrations that refuse it; these are still to come."""
    with own_database() as name:
        asker = asking(tenant_id)
        w = asker.world
        for subject in (subject_of(tenant_id, "requester"), w.service.actor.subject):
            add_member(w.system(), project_id=None, member=NewMember(subject, ("Observer",)))
        with connect(with_database(os.environ["FACTORY_TEST_ADMIN_URL"], name)) as server:
            server.execute("ALTER TABLE approvals_vote DROP CONSTRAINT vote_of_people")
            for table, rule in RULES:
                for event in ("insert", "update"):
                    server.execute(f"DROP TRIGGER {rule}_{event} ON {table}".encode())
            for statement in BEFORE.split(";")[:-1]:
                server.execute(statement.encode())
        yield asker


def apply_once_more(app: str, name: str, after: str) -> None:
    """What a migration does, done to the rows that there are; its history stays."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    with connections["owner"].schema_editor() as editor:
        loader.get_migration(app, name).apply(loader.project_state([(app, after)]), editor)


def never_checked() -> set[str]:
    (rule,) = (rule for rule in invariants() if rule.code == "G7")
    with connections["auditor"].cursor() as cursor:
        violations = [v for v in rule.check(cursor) if v.code == rule.code]
    return {v.subject.rpartition(".")[2] for v in violations if "never checked" in v.detail}


def test_a_role_from_before_counts_for_nothing_and_stays_for_a_person_to_end(before, capsys):
    w = before.world
    apply_once_more("projects", "0003_a_machine_never_decides", "0002_walls")
    apply_once_more("approvals", "0003_people_decide", "0002_walls")
    call_command("migrate", verbosity=0)
    assert capsys.readouterr().err == ""
    assert compared().faults == []  # nothing refuses to start because of it
    bot = context_of(w.service.actor.subject, w.tenant, w.project)
    assert (bot.actor.kind, bot.actor.roles) == ("service", {"Requester"})
    view = before.ask(requested_by=w.operator.actor.subject, requester_person=w.operator.actor.person)
    for glass in (False, True):
        with pytest.raises(MachineNeverDecides):
            decide(bot, view, break_glass=glass, reason="no human was here")
    with reading(before.house):
        assert bot.actor.subject not in {one.subject for one in who_may_decide(view.id) if one.may_decide}
        assert bot.actor.person not in eligible_people(w.project, ["PlatformAdmin"], [])
    assert {v.code for v in violations(w.tenant)} == {"P6"}
    with reading(before.house):
        memberships = list(Membership.objects.filter(subject=bot.actor.subject))
    for own in memberships:
        change_member(
            system(w.tenant, "test"),
            membership_id=own.id,
            version=own.version,
            roles=("Requester",),
            grants=(),
        )
    assert (never_checked(), violations(w.tenant)) == (set(), [])


def test_a_vote_of_a_machine_from_before_stays_for_a_person_to_judge(before, capsys):
    operator = before.world.operator.actor
    view = before.ask(requested_by=operator.subject, requester_person=operator.person)
    admin, name = os.environ["FACTORY_TEST_ADMIN_URL"], connections["owner"].settings_dict["NAME"]
    with connect(with_database(admin, name)) as server:
        server.execute(DAMAGE[1][1].encode(), {"id": view.id, "bot": before.world.service.actor.subject})
    with reading(before.house):
        votes = votes_of(view.id)
        assert (len(votes), counted_votes(view, votes)) == (1, []), "It is kept, and is nobody's yes."
    apply_once_more("projects", "0003_a_machine_never_decides", "0002_walls")
    apply_once_more("approvals", "0003_people_decide", "0002_walls")
    with connections["owner"].cursor() as cursor, connect(with_database(admin, name)) as other:
        cursor.execute("SET lock_timeout = '100ms'")
        with other.transaction():
            other.execute("LOCK TABLE approvals_vote IN SHARE UPDATE EXCLUSIVE MODE")
            call_command("migrate", verbosity=0)  # all is applied, only this could not be had
        cursor.execute("RESET lock_timeout")
    assert "not checked against vote_of_people yet (canceling statement due to lock timeout" in (
        capsys.readouterr().err
    )
    assert never_checked() == {"vote_of_people"}
    call_command("migrate", verbosity=0)
    assert "Some rows of approvals_vote are older than vote_of_people" in capsys.readouterr().err
    assert never_checked() == {"vote_of_people"}
    assert compared().faults == []
