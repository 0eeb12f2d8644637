"""The policy as people read, compare, question and write it: at the terminal and in the console."""

import json
import textwrap
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from approvals.admin.detail.answers import changed_answers
from approvals.commands import publish_policy_revision
from approvals.errors import PolicyInvalid
from approvals.models import PolicyRevision
from approvals.policy import document as documents
from approvals.policy.comparing import PolicyDifference, compare
from approvals.states import ActionClass
from factory.kernel.tenancy import reading
from projects.models import Project
from tests.console.test_pages import signed_in
from tests.support.approvals import Asking, asking
from tests.support.delegations import lend
from tests.support.queries import within_budget
from tests.support.released import second_policy

DEFAULT = documents.platform_default()
STRICT = {**DEFAULT, "rules": [*DEFAULT["rules"], {"actionClass": "sandbox", "effect": "deny"}]}
TEXT = documents.written(STRICT)


@pytest.fixture
def a(tenant_id: str) -> Asking:
    return asking(tenant_id)


@pytest.fixture(scope="module")
def shared() -> Asking:
    return asking(f"t-{uuid4().hex[:16]}")


@pytest.fixture(scope="module")
def revised() -> Asking:
    """A tenant with a second revision, whose note is nobody's friend."""
    made = asking(f"t-{uuid4().hex[:16]}")
    publish_policy_revision(
        made.world.workspace_admin, document=second_policy(made.house), note="<script>note</script>"
    )
    return made


def at_the_terminal(a: Asking, member: str, *words: str) -> str:
    told, ctx = StringIO(), getattr(a.world, member)
    with reading(ctx):
        slug = Project.objects.get(pk=a.world.project).slug
    who = ["--tenant", a.world.tenant, "--project", slug, "--as", ctx.actor.subject]
    call_command("policy", *who, *words, stdout=told)
    return told.getvalue()


def visit(a: Asking, member: str, page: str, **query: Any) -> Any:
    where = reverse(f"admin:approvals_policy_{page}")
    return signed_in(getattr(a.world, member)).get(f"{where}?{urlencode(query)}")


def numbers(a: Asking) -> list[int]:
    with reading(a.world.system()):
        return list(PolicyRevision.objects.order_by("number").values_list("number", flat=True))


# ---------------------------------------------------------------- comparing


def test_a_document_is_like_itself_in_any_order_of_its_rules() -> None:
    assert compare(DEFAULT, {**DEFAULT, "rules": DEFAULT["rules"][::-1]}) == []


def test_an_answer_that_changes_is_found_however_many_environments_there_are() -> None:
    places = [f"place-{number:03}" for number in range(200)]
    closed = {"actionClass": "sandbox", "environment": "place-199", "effect": "deny"}
    [told], same = changed_answers(DEFAULT, {**DEFAULT, "rules": [*DEFAULT["rules"], closed]}, places)
    assert (told.action_class, told.places, told.after.effect) == ("sandbox", ("place-199",), "deny")
    assert same == 201 * len(ActionClass) - 1
    [told], _ = changed_answers(DEFAULT, STRICT, places)
    assert (told.places[0], len(told.places), told.places[-1]) == ("no environment", 51, "151 more")


def test_differences_are_told_by_class_and_environment() -> None:
    rule = {"actionClass": "production", "environment": "live-*", "effect": "require-approval", "quorum": 2}
    after = {**DEFAULT, "rules": [*DEFAULT["rules"], rule], "spend": {"thresholdUsd": 5}, "modelProfiles": []}
    assert compare(DEFAULT, after) == [
        PolicyDifference("modelProfiles", "code-agent", ""),
        PolicyDifference("spend.thresholdUsd", "100", "5"),
        PolicyDifference("production in live-*", "not said", "a person decides first, 2 people"),
    ]
    assert [(one.before, one.after) for one in compare(after, DEFAULT)] == [
        (one.after, one.before) for one in compare(DEFAULT, after)
    ]


# ---------------------------------------------------------------- reading what somebody wrote


def test_what_is_written_is_read_as_it_was() -> None:
    assert documents.read(documents.written(DEFAULT)) == DEFAULT
    assert documents.read(json.dumps(DEFAULT)) == DEFAULT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules: [", "line 1"),
        ("rules: []\nrules: []", "the key 'rules' is written twice"),
        ("a: &x 1\nb: *x", "an anchor is not allowed"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
        ("a: " + "[" * 5000, "not readable"),
        ("a: .nan", "not readable"),
        ("a: " + "x" * 300_000, "larger than 256 KiB"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        documents.check(documents.read(text))
    assert told in refused.value.detail


def test_the_example_of_the_documentation_is_a_policy() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/policy.md").read_text()
    example = textwrap.dedent(page.split("## The document\n\n")[1].split("\n\n")[0])
    document = documents.read(example)
    documents.check(document)
    assert document["rules"][0]["quorum"] == 2


# ---------------------------------------------------------------- at the terminal


@pytest.mark.requirement("POL-04")
def test_the_terminal_explains_what_would_happen_why_and_who_could_decide(shared: Asking) -> None:
    requester = shared.world.requester.actor.subject
    told = at_the_terminal(
        shared, "observer", "explain", "production", "--environment", "production", "--requester", requester
    )
    assert "production in production: require-approval" in told
    assert "because of rule 3: production everywhere, policy r1" in told
    assert f"{shared.world.reviewer.actor.subject} (Reviewer): may decide" in told
    assert f"{requester} (Requester): " in told
    assert f"{requester} (Requester): may decide" not in told
    assert "read in no environment: allow" in at_the_terminal(shared, "observer", "explain", "read")


def test_the_terminal_and_the_console_explain_an_amount_of_money(shared: Asking) -> None:
    little = at_the_terminal(shared, "observer", "explain", "spend", "--amount", "12.50")
    assert "spend in no environment: allow\nbecause of spend.thresholdUsd: 100, policy r1" in little
    assert "A run that has used all that it may cost fails (spend.onLimit: fail)." in little
    much = at_the_terminal(shared, "observer", "explain", "spend")
    assert "spend in no environment: require-approval" in much
    assert "Nobody is asked about 100.00 USD or less." in much
    page = visit(shared, "observer", "explain", **{"class": "spend"}, amount="100").content.decode()
    assert "It would happen, and nobody would be asked" in page
    assert visit(shared, "observer", "explain", **{"class": "spend"}, amount="much").status_code == 400


def test_the_terminal_publishes_shows_and_compares(a: Asking, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(TEXT)
    told = json.loads(at_the_terminal(a, "workspace_admin", "publish", str(file), "--note", "no sandbox"))
    assert told["revision"] == "r2"
    assert documents.read(at_the_terminal(a, "observer", "show")) == STRICT
    assert documents.read(at_the_terminal(a, "observer", "show", "r1")) == DEFAULT
    assert "sandbox everywhere\n  - not said\n  + is refused" in at_the_terminal(
        a, "observer", "compare", "r1", "r2"
    )
    assert "They say the same." in at_the_terminal(a, "observer", "compare", "r2", "r2")
    assert "sandbox in no environment: deny" in at_the_terminal(a, "observer", "explain", "sandbox")


@pytest.mark.parametrize(
    ("member", "text", "told"),
    [
        ("reviewer", TEXT, "needs one of the roles WorkspaceAdmin"),
        ("workspace_admin", TEXT.replace("effect: deny", "effect: maybe"), "/rules/5/effect"),
        ("workspace_admin", "rules: [", "line 1"),
    ],
    ids=["not an admin", "an unknown effect", "no YAML"],
)
def test_the_terminal_refuses_with_the_place_and_publishes_nothing(
    shared: Asking, tmp_path: Path, member: str, text: str, told: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(CommandError, match=told):
        at_the_terminal(shared, member, "publish", str(file))
    assert numbers(shared) == [1]


@pytest.mark.parametrize(
    "words", [["show", "r9"], ["compare", "r1", "x"], ["explain", "read", "--revision", "r9"]]
)
def test_the_terminal_knows_no_other_revision(shared: Asking, words: list[str]) -> None:
    with pytest.raises(CommandError, match="There is no policy revision"):
        at_the_terminal(shared, "observer", *words)


# ---------------------------------------------------------------- in the console


def test_a_revision_is_shown_rule_by_rule(shared: Asking) -> None:
    with reading(shared.world.system()):
        row = PolicyRevision.objects.get(number=1)
    page = signed_in(shared.world.observer).get(
        reverse("admin:approvals_policyrevision_change", args=[row.pk])
    )
    text = page.content.decode()
    assert page.status_code == 200
    assert text.count('<span class="fc-badge wait">a person decides first</span>') == len(DEFAULT["rules"])
    assert "What would happen?" in text
    assert "Publish a new revision" not in text


def test_of_those_who_could_decide_it_says_how_many_count_separately(a: Asking) -> None:
    alone = visit(a, "observer", "explain", **{"class": "shared-write"}).content.decode()
    assert "of whom count" not in alone
    lend(a.world.reviewer, a.world.requester)
    text = visit(a, "observer", "explain", **{"class": "shared-write"}).content.decode()
    assert "5 people could now, 4 of whom count separately." in text


def test_the_console_explains_and_names_who_asks_as_never_deciding(shared: Asking) -> None:
    reviewer = shared.world.reviewer.actor.subject
    page = visit(shared, "observer", "explain", **{"class": "shared-write"}, requester=reviewer)
    text = page.content.decode()
    assert page.status_code == 200
    assert "rule 1: shared-write everywhere" in text
    assert text.count('<span class="fc-badge good">may decide</span>') == 3  # not the reviewer who asks
    assert visit(shared, "observer", "explain", **{"class": "nonsense"}).status_code == 400
    assert visit(shared, "observer", "explain", **{"class": "read"}, revision="r7").status_code == 404


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"class": "read"}, "It would happen, and nobody would be asked"),
        ({"class": "shared-write", "environment": "staging"}, "It would wait until a person has decided"),
        ({"class": "sandbox", "environment": "staging"}, "It would be refused"),
        ({"class": "production", "environment": "production"}, "It would wait until 2 different people"),
    ],
)
def test_the_answer_comes_first_and_is_a_sentence(revised: Asking, asked: dict[str, str], told: str) -> None:
    text = visit(revised, "observer", "explain", **asked).content.decode()
    assert f"<h2>{told}" in text
    assert text.index(told) < text.index("Ask about another action")
    assert ("who could not, and why" in text) is ("wait" in told)


def test_two_revisions_stand_side_by_side_with_the_answers_that_change(revised: Asking) -> None:
    client = signed_in(revised.world.observer)
    with within_budget("console policy comparison"):
        page = client.get(reverse("admin:approvals_policy_compare"))
    text = " ".join(page.content.decode().split())
    assert "Policy: from r1 to r2" in text
    assert text.index("What is looser, or lost") < text.index("Answers that change")
    assert "A person decides on a run&#x27;s money only above 250 USD; before, above 100 USD." in text
    for about, before, after in (
        ("sandbox<br><span class=\"fc-soft\">in staging", "happens without asking", "is refused"),
        ("production<br><span class=\"fc-soft\">in production", "Reviewer or WorkspaceAdmin; waits 3 days",
         "2 people, each Reviewer or WorkspaceAdmin"),
    ):  # fmt: skip
        assert text.index(about) < text.index(before) < text.index(after), about
    assert "19 other answers stay as they are." in text
    assert 'w">100</span>' in text, "the changed word is marked in the lines"
    assert "&lt;script&gt;note" in text
    assert "<script>note" not in text
    back = visit(revised, "observer", "compare", before="r2", after="r1").content.decode()
    assert "sandbox in staging: happens without asking; before, it was refused" in back
    same = visit(revised, "observer", "compare", before="r2", after="r2").content.decode()
    assert "the same revision twice" in same


def test_the_console_checks_compares_and_then_publishes(a: Asking) -> None:
    client, where = signed_in(a.world.workspace_admin), reverse("admin:approvals_policy_publish")
    assert "actionClass: shared-write" in client.get(where).content.decode()
    checked = client.post(where, {"document": TEXT, "act": "check"})
    assert checked.status_code == 200
    assert "sandbox everywhere" in checked.content.decode()
    assert numbers(a) == [1]
    done = client.post(where, {"document": TEXT, "note": "no sandbox", "act": "publish"})
    assert done.status_code == 302
    assert numbers(a) == [1, 2]
    page = client.get(done.headers["Location"]).content.decode()
    assert "Policy revision r2" in page
    assert "no sandbox" in page
    compared = visit(a, "observer", "compare", before="r1", after="r2").content.decode()
    assert "1 difference in the document" in compared
    odd = visit(a, "observer", "compare", before="r1", after="r7").content.decode()
    assert "There is no policy revision “r7” here. r2 stands in its place." in odd
    assert "1 difference in the document" in odd


def test_the_console_refuses_with_the_place_and_keeps_what_was_written(shared: Asking) -> None:
    client, where = signed_in(shared.world.workspace_admin), reverse("admin:approvals_policy_publish")
    wrong = TEXT.replace("effect: deny", "effect: <script>maybe")
    page = client.post(where, {"document": wrong, "note": "kept", "act": "publish"})
    text = page.content.decode()
    assert page.status_code == 400
    assert "/rules/5/effect" in text
    assert "&lt;script&gt;maybe" in text
    assert "<script>maybe" not in text
    assert 'value="kept"' in text
    assert numbers(shared) == [1]


@pytest.mark.parametrize("member", ["observer", "reviewer", "operator", "requester"])
def test_only_an_administrator_finds_the_page_that_publishes(shared: Asking, member: str) -> None:
    client, where = signed_in(getattr(shared.world, member)), reverse("admin:approvals_policy_publish")
    for answer in (client.get(where), client.post(where, {"document": TEXT, "act": "publish"})):
        assert answer.status_code == 403
        assert "a workspace admin of the whole tenant publishes it" in answer.content.decode()
    assert numbers(shared) == [1]
