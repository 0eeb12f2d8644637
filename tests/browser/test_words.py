"""Other people's words are shown as words on every page: none of them runs, moves or hides anything."""

import copy
from uuid import UUID, uuid4

import pytest

from approvals.commands import publish_policy_revision
from approvals.selectors import current_policy
from factory.kernel.tenancy import reading
from registry.commands import revoke_release
from registry.models import Asset
from runs.commands import cancel_run
from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.support.proposals import ALL_OF_IT, HOSTILE, change
from tests.support.receipts import receipt
from tests.support.released import second_policy
from tests.support.running import House
from tests.support.workflows import MANIFEST, human, node, workflow

DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,{n} @@ {first}\n-old\n{lines}".format(
    n=len(HOSTILE), first=HOSTILE[0], lines="".join(f"+{words}\n" for words in HOSTILE)
)
SHORT = HOSTILE[0] + HOSTILE[3] + HOSTILE[12]
PROPOSALS = [
    change(DIFF, ALL_OF_IT),
    change(DIFF.replace("b/x", f"b/{HOSTILE[2]}"), SHORT),
    {
        "kind": "tool-call",
        "tool": HOSTILE[0],
        "arguments": {HOSTILE[2]: HOSTILE[3], "nested": {HOSTILE[0]: HOSTILE}},
        HOSTILE[4]: ALL_OF_IT,
    },
    {"kind": "text", "text": ALL_OF_IT, HOSTILE[1]: HOSTILE},
    {"kind": "manifest", "manifest": {HOSTILE[0]: {HOSTILE[2]: HOSTILE}}, "evaluation": {HOSTILE[3]: "x"}},
    change(
        f"{HOSTILE[6]}\ndiff --git a/{HOSTILE[2]} b/{HOSTILE[0]}.py\n"
        f"rename from {HOSTILE[2]}\nrename to {HOSTILE[0]}.py\n"
        f"--- a/{HOSTILE[2]}\n+++ b/{HOSTILE[0]}.py\n@@" + DIFF.partition("@@")[2],
        SHORT,
    ),
]


@pytest.fixture(scope="module")
def house() -> House:
    return House(f"t-{uuid4().hex[:16]}")


@pytest.fixture(scope="module")
def asked(house: House) -> list[UUID]:
    """Questions with such words in all that an agent writes; the first was sent back with more of them."""
    worker, made = house.hand(slots=16), []
    for proposal in PROPOSALS:
        house.run("gated", input={"repository": ALL_OF_IT})
        work = worker.take()
        worker.receipts(work, receipt(name=HOSTILE[2][:60], details={"note": ALL_OF_IT}))
        made.append(worker.ask(work, proposal, summary=SHORT, park=True).approval_id)
    house.decide(made[0], "request_changes", reason=ALL_OF_IT)
    again = worker.take()
    made.append(worker.ask(again, change(DIFF, "second"), summary=SHORT, park=True).approval_id)
    return [a for a in made if a is not None]


@pytest.fixture(scope="module")
def ended(house: House, asked: list[UUID]) -> list[UUID]:
    """Runs that ended with such words: a failure, an output, a cancellation."""
    worker = house.hand("w2", slots=16)
    failed, done, stopped = (house.run("stubborn"), house.run("single"), house.accept("diamond"))
    for work in worker.poll():
        worker.acquire(work)
        if work.run_id == failed:
            worker.report(work, "Failed", "permanent", reason=ALL_OF_IT[:900])
        else:
            worker.report(work, output={"said": HOSTILE, HOSTILE[0]: ALL_OF_IT})
    cancel_run(house.world.operator, run_id=stopped, reason=ALL_OF_IT[:900])
    return [failed, done, stopped]


@pytest.fixture
def operator(house: House, visit: Visit) -> Visitor:
    return visit().sign_in(house.world.operator)


def harmless(visitor: Visitor) -> None:
    """Nothing but the house's own elements stands on the page, and nothing of it goes elsewhere."""
    visitor.page.wait_for_load_state("networkidle")
    strays = visitor.measure(
        """() => [...document.querySelectorAll("*")].filter(e =>
            (e.tagName == "SCRIPT" && !e.src && e.type != "application/json" && e.textContent.trim())
            || ["IFRAME", "BASE", "ANIMATE"].includes(e.tagName) || e.hasAttribute("onerror")
            || e.hasAttribute("onload")
            || /javascript:|elsewhere/.test(e.getAttribute("href") || e.getAttribute("action") || ""))
          .map(e => e.outerHTML.slice(0, 200))"""
    )
    assert strays == []
    assert visitor.measure("getComputedStyle(document.body).display") != "none"
    assert not visitor.troubles, visitor.page.url


def test_a_question_shows_hostile_words_as_words(house: House, asked: list[UUID], visit: Visit) -> None:
    reviewer = visit().sign_in(house.world.reviewer)
    for approval_id in asked:
        reviewer.open(f"/admin/approvals/approvalrequest/{approval_id}/change/")
        reviewer.reads("<script>alert('a script')</script>")
        harmless(reviewer)
        assert HOSTILE[0] in reviewer.part(".fc-decision").inner_text()
    reviewer.open("/admin/approvals/approvalrequest/?whose=all")
    harmless(reviewer)
    for approval_id in asked[-2:]:
        reviewer.page.locator(f'input[name="_selected_action"][value="{approval_id}"]').check()
    reviewer.page.locator('select[name="action"]').select_option("reject_selected")
    reviewer.page.locator('button[name="index"]').click()
    reviewer.reads("Nothing is decided yet")
    harmless(reviewer)
    reviewer.expected.add(409)
    reviewer.look_away()
    reviewer.open(f"/admin/approvals/approvalrequest/{asked[-1]}/change/")
    house.decide(asked[-1], by=house.world.reviewer2)
    reviewer.page.get_by_label("Reason").fill(ALL_OF_IT)
    reviewer.press("Reject")
    reviewer.reads("Nothing was decided")
    harmless(reviewer)


def test_a_run_shows_hostile_words_as_words(operator: Visitor, ended: list[UUID]) -> None:
    for run_id in ended:
        operator.open(f"/admin/runs/run/{run_id}/change/")
        operator.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        harmless(operator)
    operator.open(f"/admin/runs/run/{ended[0]}/change/")
    operator.reads("<script>alert('a script')</script>")


@pytest.fixture(scope="module")
def published(house: House) -> list[UUID]:
    """Two releases with such words in all that a manifest, a file and a reason can hold."""
    odd, base = iter(HOSTILE * 9), copy.deepcopy(MANIFEST)
    for part in (*base["agents"], *base["skills"], *base["modelProfiles"]):
        part["description"] = next(odd)
    flow = workflow("hostile", human("ask", question=next(odd)), node("look", "ask"))
    flow |= {"title": next(odd), "inputSchema": {"type": "object", "description": ALL_OF_IT}}
    files = {"a": ALL_OF_IT.encode(), "s": f"x = {HOSTILE[0]!r}\n".encode()}
    made = [house.publish(base | {"version": "1.1.0", "workflows": [flow]}, commit="f" * 40, **files)]
    again = copy.deepcopy(base) | {"version": "1.2.0", "workflows": [flow | {"title": next(odd)}]}
    again["skills"][0]["description"] = next(odd)
    made.append(house.publish(again, commit="e" * 40, a=f"{ALL_OF_IT}\nand more".encode()))
    revoke_release(house.world.operator, release_id=made[0], in_flight="drain", reason=ALL_OF_IT[:900])
    return made


def test_a_release_and_a_policy_show_hostile_words_as_words(
    house: House, operator: Visitor, published: list[UUID]
) -> None:
    document = second_policy(house.system) | {"description": ALL_OF_IT[:900]}
    publish_policy_revision(house.world.workspace_admin, document=document, note=SHORT)
    with reading(house.system):
        asset = Asset.objects.get(name="sample").id
        revision = current_policy(house.system).id
    release = f"/admin/registry/release/{published[1]}"
    policy = "/admin/approvals/policyrevision"
    for path in (
        f"{release}/change/", f"{release}/change/?against={house.release}", f"{release}/revoke/",
        f"/admin/registry/release/{published[0]}/change/", f"/admin/registry/asset/{asset}/change/",
        "/admin/registry/release/", f"{policy}/{revision}/change/", f"{policy}/compare/",
        f"{policy}/explain/?class=read&requester=%22%3E%3Csvg/onload=alert(1)%3E",
    ):  # fmt: skip
        operator.open(path)
        operator.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        harmless(operator)
    operator.open(f"{release}/change/?against={house.release}")
    for said in (HOSTILE[0], HOSTILE[2], "and more", "⟨U+202E⟩"):
        operator.reads(said)


LISTS = (
    "", "approvals/approvalrequest/", "runs/run/", "runs/step/", "usage/usagerecord/",
    "usage/usagerecord/explorer/", "factory/auditentry/", "factory/journalentry/", "factory/outboxevent/",
    "approvals/approvalrequest/?q=%3Cscript%3Ealert(1)%3C/script%3E",
    "runs/run/?q=%22%3E%3Csvg/onload=alert(1)%3E",
)  # fmt: skip


def test_a_list_shows_hostile_words_as_words(operator: Visitor, ended: list[UUID]) -> None:
    for page in LISTS:
        operator.open(f"/admin/{page}")
        harmless(operator)
