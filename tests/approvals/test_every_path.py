"""Every path is the same command: the same refusals in the same order, each audited once."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from approvals.commands import BulkDecision, decide_each
from tests.approvals.test_decisions import decide, give_role
from tests.console.test_pages import signed_in
from tests.support.api import Api
from tests.support.delegations import lend
from tests.support.evidence import audits, counts, violations
from tests.support.world import context_of

pytestmark = pytest.mark.slow

DECISIONS = "/factory/approvals/decisions"


def by_api(ctx, view, decision="approve", **other):
    body = {"decision": decision, "version": view.version, "proposalHash": view.proposal_hash, **other}
    return Api.as_(ctx).post(f"/factory/approvals/{view.id}/decision", body).status_code


def by_break_glass(ctx, view, decision="approve", **other):
    return by_api(ctx, view, decision, **{"breakGlass": True, "reason": "it burns", **other})


def item(view, decision="approve", **other):
    seen = {"version": view.version, "proposalHash": view.proposal_hash}
    return {"approvalId": str(view.id), "decision": decision, **seen, **other}


def by_bulk(ctx, view, decision="approve", **other):
    answer = Api.as_(ctx).post(DECISIONS, {"items": [item(view, decision, **other)]})
    assert answer.status_code == 207, answer.content
    return answer.json()["items"][0]["status"]


def by_button(ctx, view, decision="approve", **other):
    names = {"proposalHash": "proposal_hash"}
    form = {"decision": decision, "version": view.version, "proposal_hash": view.proposal_hash}
    form |= {names.get(name, name): value for name, value in other.items()}
    return signed_in(ctx).post(reverse("admin:approvals_decide", args=[view.id]), form).status_code


def by_list(ctx, view, decision="approve", **other):
    version, proposal_hash = other.get("version", view.version), other.get("proposalHash", view.proposal_hash)
    form = {"decision": decision, "seen": [f"{view.id} {version} {proposal_hash}"]}
    page = signed_in(ctx).post(reverse("admin:approvals_decide_many"), form, follow=True)
    assert page.status_code == 200
    [fate] = page.context["fates"].each
    return fate.status or 302


def by_terminal(ctx, view, decision="approve", **other):
    where = ["--tenant", ctx.tenant_id, "--project", "main", "--as", ctx.actor.subject]
    seen = ["--seen-version", str(other.get("version", view.version))]
    seen += ["--proposal-hash", other.get("proposalHash", view.proposal_hash)]
    try:
        call_command("approve", str(view.id), *where, *seen, "--decision", decision, stdout=StringIO())
    except CommandError as refused:
        return refused.__cause__.http_status
    return 200


PATHS = [by_api, by_bulk, by_button, by_list, by_terminal]


@pytest.mark.requirement("APR-18", "APR-21")
@pytest.mark.parametrize("path", [*PATHS, by_break_glass])
def test_the_requester_with_every_role_decides_nothing(asker, path):
    me = asker.world.platform_admin
    own = asker.ask(requested_by=me.actor.subject, requester_person=me.actor.person)
    give_role(asker, asker.world.requester, "Requester", "Reviewer", "WorkspaceAdmin")
    theirs = asker.again().ask()
    both = context_of(asker.world.requester.actor.subject, asker.world.tenant, asker.world.project)
    for ctx, view in ((me, own), (both, theirs)):
        before = counts(asker.house)
        assert path(ctx, view) == 403
        after = counts(asker.house)
        assert (after[0], after[1], after[2]) == (before[0], before[1], before[2] + 1)
        assert asker.view(view.id) == view
    codes = [e.detail["code"] for e in audits(asker.house, "DecideApproval")]
    assert "separation-of-duties" in codes


@pytest.mark.requirement("APR-10", "APR-11", "APR-12", "APR-13")
@pytest.mark.parametrize("path", PATHS)
def test_the_first_that_fails_answers(asker, path):
    """Role before state, state before version: with everything wrong at once, in the order of the house."""
    w = asker.world
    decided = decide(w.reviewer, asker.ask(), "reject")
    waiting = asker.again().ask()
    asker.cancel()
    over = asker.view(waiting.id)
    open_ = asker.again().ask()
    wrong = {"version": 99, "proposalHash": "sha256:0"}
    for view in (decided, over, open_):
        assert path(w.observer, view, **wrong) == 403
    assert path(w.reviewer2, decided, **wrong) == 409
    assert path(w.reviewer2, over, **wrong) == 410
    assert path(w.reviewer2, open_, **wrong) == 409
    codes = [e.detail["code"] for e in audits(asker.house, "DecideApproval") if e.outcome == "refused"]
    assert codes == ["insufficient-role"] * 3 + ["already-decided", "approval-over", "version-mismatch"]
    assert asker.view(open_.id) == open_
    assert path(w.reviewer2, open_) in (200, 302)
    assert violations(w.tenant) == []


@pytest.mark.parametrize("path", [by_api, by_bulk, by_button, by_list, by_terminal])
def test_a_lent_role_serves_on_every_path(asker, path):
    lend(asker.world.reviewer, asker.world.observer)
    delegate = context_of(asker.world.observer.actor.subject, asker.world.tenant, asker.world.project)
    view = asker.ask()
    assert path(delegate, view) in (200, 302)
    assert asker.view(view.id).decided_for == asker.world.reviewer.actor.subject


@pytest.mark.requirement("LTR-02")
def test_many_at_once_are_decided_each_by_itself(asker):
    w = asker.world
    good, moved = asker.ask(), asker.again().ask()
    gone = decide(w.reviewer2, asker.again().ask(), "reject")
    mine = asker.again().ask(requested_by=w.reviewer.actor.subject, requester_person=w.reviewer.actor.person)
    items = [item(good), item(moved, version=7), item(gone), item(mine), item(good)]
    items.append({**item(good), "approvalId": str(asker.run_id)})
    answer = Api.as_(w.reviewer).post(DECISIONS, {"items": items})
    told = answer.json()["items"]
    assert answer.status_code == 207
    assert [one["status"] for one in told] == [200, 409, 409, 403, 409, 404]
    assert told[0]["approval"]["state"] == "Approved"
    assert told[1]["problem"]["type"].endswith("/version-mismatch")
    assert told[2]["problem"]["decision"]["decidedBy"] == w.reviewer2.actor.subject
    assert [asker.view(v.id).state for v in (good, moved, gone, mine)] == [
        "Approved",
        "Pending",
        "Rejected",
        "Pending",
    ]
    assert violations(w.tenant) == []


@pytest.mark.parametrize("items", [[], [{}] * 101, [{"decision": "approve"}], "all"])
def test_a_bulk_of_another_shape_decides_nothing(asker, items):
    assert Api.as_(asker.world.reviewer).post(DECISIONS, {"items": items}).status_code == 400


def test_a_bulk_breaks_no_glass(asker):
    view = asker.ask()
    body = {"items": [item(view, breakGlass=True, reason="all of it burns")]}
    assert Api.as_(asker.world.platform_admin).post(DECISIONS, body).status_code == 400
    [outcome] = decide_each(
        asker.world.platform_admin,
        [BulkDecision(view.id, "approve", view.version, view.proposal_hash, "all of it burns")],
    )
    assert outcome.refusal is not None


def test_a_token_without_the_scope_decides_nothing_in_bulk_and_is_noted(asker):
    view = asker.ask()
    answer = Api.as_(asker.world.reviewer, scopes={"factory.approvals.read"}).post(
        DECISIONS, {"items": [item(view)]}
    )
    assert answer.status_code == 403
    assert asker.view(view.id) == view


def test_the_terminal_shows_before_it_decides(asker):
    w, view = asker.world, asker.ask()
    where = ["--tenant", w.tenant, "--project", "main", "--as", w.reviewer.actor.subject]
    shown = StringIO()
    call_command("approve", str(view.id), *where, stdout=shown)
    assert view.proposal_hash in shown.getvalue()
    assert "\n  | +++ b/" in shown.getvalue(), "a diff is shown line by line"
    assert asker.view(view.id) == view, "looking decides nothing"
    told = StringIO()
    call_command("approve", str(view.id), *where, "--json", stdout=told)
    facts = json.loads(told.getvalue())
    assert (facts["state"], facts["proposal"]["kind"]) == ("Pending", "unified-diff")
    done = StringIO()
    call_command(
        "approve",
        str(view.id),
        *where,
        "--seen-version",
        str(facts["version"]),
        "--proposal-hash",
        facts["proposalHash"],
        "--json",
        stdout=done,
    )
    assert json.loads(done.getvalue())["state"] == "Approved"
    other, observer = asker.again().ask(), [*where[:-1], w.observer.actor.subject]
    for words in ([], ["--json"], ["--break-glass"]):
        looked = StringIO()
        with pytest.raises(CommandError, match="You may not decide"):
            call_command("approve", str(other.id), *observer, *words, stdout=looked)
        assert "--seen-version" not in looked.getvalue()
    with pytest.raises(CommandError, match="no member"):
        call_command("approve", str(view.id), *where[:-1], "nobody@else.test")


def test_choosing_rows_shows_what_would_be_decided(asker):
    w, first, second = asker.world, asker.ask(), asker.again().ask()
    client = signed_in(w.reviewer)
    inbox = reverse("admin:approvals_approvalrequest_changelist")
    chosen = {"action": "approve_selected", "_selected_action": [str(first.id), str(second.id)], "index": 0}
    page = client.post(inbox, chosen, follow=True)
    text = page.content.decode()
    assert page.status_code == 200
    for view in (first, second):
        assert f"{view.id} {view.version} {view.proposal_hash}" in text
        assert asker.view(view.id) == view, "nothing is decided by choosing"
    again = client.get(page.redirect_chain[0][0])
    assert again.status_code == 200, "it can be read again"
    seen = [f"{view.id} {view.version} {view.proposal_hash}" for view in (first, second)]
    many, form = reverse("admin:approvals_decide_many"), {"decision": "approve", "seen": seen}
    refused = client.post(many, form | {"reason": "y" * 2100})
    text = refused.content.decode()
    assert refused.status_code == 400
    assert "too long by 100 of its 2,100 characters: at most 2,000 fit." in text
    assert f">{'y' * 2100}</textarea>" in text, "nothing of it is lost"
    assert asker.view(first.id) == first
    done = client.post(many, form)["Location"]
    for _ in range(2):
        assert "2 of 2 decided" in client.get(done).content.decode()
    assert signed_in(w.reviewer2).get(done).status_code == 404, "kept for who decided"
    left = client.get(page.redirect_chain[0][0]).content.decode()
    assert left.count("there is nothing left to decide") == 2


def test_break_glass_has_a_page_of_its_own(asker):
    w, view = asker.world, asker.ask()
    url = reverse("admin:approvals_break_glass", args=[view.id])
    page = reverse("admin:approvals_approvalrequest_change", args=[view.id])
    assert url in signed_in(w.platform_admin).get(page).content.decode()
    assert url not in signed_in(w.reviewer).get(page).content.decode()
    shown = signed_in(w.platform_admin).get(url).content.decode()
    assert "Reviewer" in shown
    assert asker.view(view.id) == view
    form = {"decision": "approve", "version": view.version, "proposal_hash": view.proposal_hash}
    assert signed_in(w.platform_admin).post(url, form).status_code == 400, "no reason"
    assert signed_in(w.reviewer).post(url, form | {"reason": "x"}).status_code == 403
    assert signed_in(w.platform_admin).post(url, form | {"reason": "it burns"}).status_code == 302
    after = signed_in(w.reviewer).get(page).content.decode()
    assert "Decided by break-glass" in after
    listed = signed_in(w.auditor).get(
        reverse("admin:approvals_approvalrequest_changelist") + "?whose=break-glass"
    )
    assert str(view.id) in listed.content.decode()
    assert "Decided past you" in signed_in(w.reviewer).get(reverse("admin:index")).content.decode()
    assert "Decided past you" not in signed_in(w.observer).get(reverse("admin:index")).content.decode()
