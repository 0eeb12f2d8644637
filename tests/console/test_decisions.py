"""The decision page: what it says, what its buttons do, and what it does when things have moved on."""

from uuid import UUID

import pytest
from django.urls import reverse

from approvals import selectors
from approvals.errors import ApprovalOver
from approvals.selectors import ApprovalView
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from tests.console.test_pages import signed_in
from tests.support.approvals import Asking, Stage, asking, let_expire, staged
from tests.support.client import Client
from tests.support.evidence import audits, counts
from tests.support.world import second_world

EVIL = '<script>alert("x")</script>'
DIFF = (
    "diff --git a/report.md b/report.md\nnew file mode 100644\n--- /dev/null\n+++ b/report.md\n"
    f"@@ -0,0 +1,2 @@\n+# Report {EVIL}\n+142 files\n"
)


@pytest.fixture
def asked(tenant_id: str) -> Asking:
    return asking(tenant_id)


@pytest.fixture(autouse=True)
def stage() -> Stage:
    with staged() as made:
        yield made


def page_of(view: ApprovalView) -> str:
    return reverse("admin:approvals_approvalrequest_change", args=[view.id])


def send(client: Client, view: ApprovalView, decision: str, **other: object) -> object:
    form = {"decision": decision, "version": view.version, "proposal_hash": view.proposal_hash, "reason": ""}
    return client.post(reverse("admin:approvals_decide", args=[view.id]), {**form, **other})


def state_of(asked: Asking, approval_id: UUID) -> str:
    with reading(asked.house):
        return selectors.approval(approval_id).state


@pytest.mark.requirement("APR-30")
def test_shows_exactly_what_is_decided_about_as_text(asked: Asking) -> None:
    proposal = {"kind": "unified-diff", "repository": "artifacts", "diff": DIFF, "message": EVIL}
    view = asked.ask(proposal=proposal, summary=f"commit {EVIL}")
    page = signed_in(asked.world.reviewer).get(page_of(view))
    text = page.content.decode()
    assert page.status_code == 200
    assert EVIL not in text
    assert text.count("&lt;script&gt;") >= 3
    for said in (
        "142 files",
        "shared-write",
        view.proposal_hash[-8:],
        "Approve exactly this",
        "r1",
        "Who may decide",
    ):
        assert said in text
    assert f'name="version" value="{view.version}"' in text
    assert f'name="proposal_hash" value="{view.proposal_hash}"' in text


def test_lists_and_facts_of_a_manifest_are_read_as_tables(asked: Asking) -> None:
    entry = {"kind": "skill", "id": f"look {EVIL}", "sha256": "sha256:" + "a" * 64, "sideEffectClass": None}
    proposal = {
        "kind": "manifest",
        "manifest": {"asset": "sample", "workflows": [{"nodes": [{"needs": [{"deep": True}]}]}]},
        "entries": [{**entry, "scopes": ["repo.read", EVIL]}, {**entry, "id": "write", "size": 2048}] * 101,
        "crew": [{"name": "night", "size": 20}],
        "evaluation": {"suite": "basic", "scores": {"findings": 1.0}, "verdict": "pass"},
    }
    view = asked.ask(proposal=proposal)
    text = signed_in(asked.world.reviewer).get(page_of(view)).content.decode()
    for said in ('<th scope="col">Scopes</th>', "repo.read, &lt;script&gt;", "a" * 64, "Scores: findings"):
        assert said in text, said
    assert EVIL not in text
    assert text.count('<td data-label="Sha256" class="fc-long">') == 200
    assert "2 more rows are in the JSON below" in text
    assert text.count('<span title="2,048 bytes">2.0\xa0KB</span>') == 100
    assert '<td data-label="Size">20</td>' in text, "Of what is no file nobody knows the unit"
    assert text.count(", as hashed, in JSON") == 3, "A table says less than what is signed"
    assert "Side effect class" not in text, "A column in which nothing stands says nothing"
    assert "&quot;deep&quot;" in text, "What is no table is told as it was hashed"


def test_says_whether_all_of_a_proposal_is_on_the_page_and_what_of_it_is_folded(asked: Asking) -> None:
    def told(proposal: dict[str, object]) -> str:
        return signed_in(asked.world.reviewer).get(page_of(asked.ask(proposal=proposal))).content.decode()

    def new_file(lines: int) -> str:
        head = "diff --git a/n.md b/n.md\nnew file mode 100644\n--- /dev/null\n+++ b/n.md\n"
        return f"{head}@@ -0,0 +1,{lines} @@\n" + "+a\n" * lines

    opens = ": what is folded opens at the line that says what stands there."
    kind = {"kind": "unified-diff"}
    assert "all of it on this page." in told({**kind, "diff": new_file(3)})
    assert f"all of it on this page{opens}" in told({**kind, "diff": new_file(300)})
    assert f"not all of it on this page{opens}" in told({**kind, "diff": new_file(10_001)})
    for change in ("", "new file mode 100644\n", "deleted file mode 100644\n"):
        png = f"diff --git a/x.png b/x.png\n{change}index 123..456\nBinary files a/x.png and b/x.png differ\n"
        assert "not all of it on this page" in told({**kind, "diff": png}), change


def test_says_that_what_was_approved_before_still_counts(asked: Asking) -> None:
    """A worker that proposes something else after a yes may do both, once this is approved as well."""
    first = asked.ask()
    client = signed_in(asked.world.reviewer)
    send(client, first, "approve")
    counts_still = "was approved and is not used yet"
    for words in ("something else", "and again"):
        later = asked.ask(proposal={"kind": "text", "text": words})
        assert counts_still in client.get(page_of(later)).content.decode()
    assert counts_still not in client.get(page_of(first)).content.decode()


def test_says_a_yes_of_the_readers_own_only_to_who_may_say_it(asked: Asking) -> None:
    view = asked.ask(proposal={"kind": "text", "text": "the words"})
    assert "If you approve, exactly" in signed_in(asked.world.reviewer).get(page_of(view)).content.decode()
    for by in (asked.world.requester, asked.world.observer):
        text = signed_in(by).get(page_of(view)).content.decode()
        assert "If it is approved, exactly" in text
        assert "If you approve" not in text
        assert "checked again when you send" not in text


def test_what_is_over_is_told_in_the_past_and_asks_nobody(asked: Asking) -> None:
    view = asked.ask(proposal={"kind": "unified-diff", "diff": DIFF})
    client = signed_in(asked.world.reviewer)
    send(client, view, "request_changes", reason="State the cost")
    text = client.get(page_of(view)).content.decode()
    for said in ("asked to change 1 file", "Why a decision was needed", "<h2>Sent back</h2>", ">Stale<"):
        assert said in text, said
    for unsaid in ("Who may decide", "checked again when you send", "May this run", "fc-badge wait"):
        assert unsaid not in text, unsaid
    cancelled = asked.ask(proposal={"kind": "text", "text": "more"})
    asked.cancel()
    text = client.get(page_of(cancelled)).content.decode()
    assert f"Cancelled by {asked.house.actor.subject}, together with what it was about." in text


@pytest.mark.parametrize(
    ("decision", "reason", "state"),
    [("approve", "", "Approved"), ("reject", "", "Rejected"), ("request_changes", "State the cost", "Stale")],
)
def test_each_button_decides(asked: Asking, stage: Stage, decision: str, reason: str, state: str) -> None:
    view = asked.ask()
    client = signed_in(asked.world.reviewer)
    assert send(client, view, decision, reason=reason).status_code == 302
    with reading(asked.house):
        after = selectors.approval(view.id)
    assert (after.state, after.decided_by, after.reason) == (
        state,
        asked.world.reviewer.actor.subject,
        reason,
    )
    assert [moved.id for moved in stage.moved] == [view.id]
    (entry,) = audits(asked.house, "DecideApproval")
    assert entry.channel == "admin"
    assert (entry.reason, entry.detail["decision"]) == (reason, decision), "the log says what, and why"


def test_decides_nothing_when_the_proposal_has_moved_on(asked: Asking) -> None:
    view = asked.ask()
    client = signed_in(asked.world.reviewer)
    answer = send(client, view, "approve", version=view.version + 1, reason="looks right")
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "Nothing was decided" in text
    assert "looks right" in text, "the reason that was typed is kept"
    assert state_of(asked, view.id) == "Pending"


@pytest.mark.requirement("IDN-17", "RUN-26")
def test_the_requester_reads_why_not_and_cannot_send(asked: Asking) -> None:
    view = asked.ask()
    client = signed_in(asked.world.requester)
    page = client.get(page_of(view)).content.decode()
    assert "You may not" in page
    assert "Approve exactly this" not in page
    assert send(client, view, "approve").status_code == 403
    assert state_of(asked, view.id) == "Pending"
    assert [a.outcome for a in audits(asked.house, "DecideApproval")] == ["refused"]


def test_changes_need_a_reason(asked: Asking) -> None:
    view = asked.ask()
    answer = send(signed_in(asked.world.reviewer), view, "request_changes")
    assert answer.status_code == 400
    assert "reason" in answer.content.decode()
    assert state_of(asked, view.id) == "Pending"


@pytest.mark.parametrize("other", [{"decision": "allow"}, {"version": ""}, {"proposal_hash": ""}])
def test_an_unknown_word_is_never_a_yes(asked: Asking, other: dict) -> None:
    view = asked.ask()
    answer = send(signed_in(asked.world.reviewer), view, other.pop("decision", "approve"), **other)
    assert answer.status_code in (400, 409)
    assert state_of(asked, view.id) == "Pending"


def test_following_a_link_never_decides(asked: Asking) -> None:
    view = asked.ask()
    client = signed_in(asked.world.reviewer)
    before = counts(asked.house)
    for link in (page_of(view), reverse("admin:approvals_decide", args=[view.id])):
        for method in (client.get, client.head, client.options):
            assert method(link, {"decision": "approve"}).status_code in (200, 404, 405)
    assert counts(asked.house) == before


def test_a_form_of_another_site_is_refused(asked: Asking) -> None:
    view = asked.ask()
    client = signed_in(asked.world.reviewer)
    client.handler.enforce_csrf_checks = True
    assert send(client, view, "approve").status_code == 403
    assert state_of(asked, view.id) == "Pending"


@pytest.mark.requirement("IDN-15", "IDN-16")
def test_another_tenants_request_does_not_exist(asked: Asking, tenant_id: str) -> None:
    view = asked.ask()
    client = signed_in(second_world(tenant_id).reviewer)
    assert client.get(page_of(view)).status_code == 404
    assert client.get(reverse("admin:approvals_proposal", args=[view.id])).status_code == 404
    assert send(client, view, "approve").status_code == 404
    assert state_of(asked, view.id) == "Pending"


def test_the_proposal_is_downloaded_and_never_displayed(asked: Asking) -> None:
    view = asked.ask(proposal={"kind": "text", "text": EVIL})
    answer = signed_in(asked.world.reviewer).get(reverse("admin:approvals_proposal", args=[view.id]))
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    hidden = signed_in(asked.world.observer).get(reverse("admin:approvals_proposal", args=[view.id]))
    assert hidden.status_code == 404


def test_a_later_round_says_what_changed(asked: Asking) -> None:
    first = asked.ask(proposal={"kind": "unified-diff", "diff": DIFF})
    send(signed_in(asked.world.reviewer), first, "request_changes", reason="State the cost, please")
    second = asked.ask(proposal={"kind": "unified-diff", "diff": DIFF.replace("142", "143")})
    text = signed_in(asked.world.reviewer2).get(page_of(second)).content.decode()
    assert "State the cost, please" in text
    assert "differs from proposal 1" in text
    assert "Proposal 2 of this step" in text


def live_parts(who: Context, view: ApprovalView) -> str:
    """What the open page asks for every few seconds."""
    return " ".join(signed_in(who).get(page_of(view), {"part": "standing"}).content.decode().split())


def test_what_no_answer_is_taken_for_any_more_closes_the_form_of_an_open_page(
    asked: Asking, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = asked.ask()
    before = live_parts(asked.world.reviewer, view)
    assert "data-closed" not in before
    assert "You may." in before
    outdated = ApprovalOver(f"The release was taken back. {EVIL}")
    monkeypatch.setattr(stage, "outdated", outdated)
    after = live_parts(asked.world.reviewer, view)
    for said in (
        "<div data-closed>",
        "What you have typed is kept below.",
        "Nobody, as things stand.",
        "Nothing of this has happened, and no answer would make it happen as things stand.",
    ):
        assert said in after, said
    assert "You may." not in after
    assert "The release was taken back." in after
    assert EVIL not in after


def test_a_request_that_is_asked_once_more_says_so_when_its_time_is_over(
    asked: Asking, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = asked.ask(policy=asked.ruled(quorum=2, onExpiry="re-request"))
    send(signed_in(asked.world.reviewer), view, "approve")
    let_expire(view.id)
    text = live_parts(asked.world.reviewer2, view)
    assert "nobody decides on this request any more. The same is asked once more." in text
    assert "It is over" not in text
    monkeypatch.setattr(stage, "outdated", ApprovalOver("It was taken back."))
    text = live_parts(asked.world.reviewer2, view)
    assert "nobody decides on this request any more." in text
    assert "asked once more" not in text


def test_a_rule_for_every_environment_is_told_in_words_and_kept_as_it_is(asked: Asking) -> None:
    view = asked.ask()
    assert view.approver_rule.endswith("(rule 1: shared-write in *)"), "frozen as programs read it"
    for who in (asked.world.reviewer, asked.world.observer):
        text = signed_in(who).get(page_of(view)).content.decode()
        assert "(rule 1: shared-write everywhere)" in text
        assert "shared-write in *" not in text
