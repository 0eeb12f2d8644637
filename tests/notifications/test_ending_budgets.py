"""Who can open a budget is told, once, that none covers the coming month."""

import pytest

from notifications.commands import notify_of_ending_budget
from tests.notifications.support import bring, notices, told
from tests.support.clocks import watch
from tests.support.evidence import violations
from tests.usage.money_world import money, this_month
from usage.commands import see_to_next_month
from usage.pricing.periods import NOTICE, begins_at, next_month

pytestmark = pytest.mark.slow


def test_who_can_open_one_is_told_once_by_mail(tenant_id, mails, monkeypatch):
    m = money(tenant_id)
    first, w = m.budget("10"), m.world
    m.dispatched("1")
    month = next_month(this_month())
    due = begins_at(month) - NOTICE
    watch(monkeypatch, due)
    see_to_next_month(m.ctx, budget_id=first, due_at=due)
    bring(w.tenant)
    over_money = {w.finance, w.workspace_admin, w.tenant_admin, w.platform_admin}
    assert told(m.ctx, "budget-ending") == {one.actor.subject for one in over_money}
    [mail] = [one for one in mails if one.to == [w.finance.actor.subject]]
    assert mail.subject == f"Factory: no budget covers {month:%B %Y} yet, in main"
    assert f"From {month:%d %b %Y}, 00:00 UTC, no run can start in main, unless" in mail.body
    mails.clear()
    assert notify_of_ending_budget(m.ctx, project_id=w.project, month=month) == 0
    bring(w.tenant)
    assert mails == []
    assert notices(m.ctx) == ["budget-ending"]
    assert not [one for one in violations(w.tenant) if one.code not in ("E2e", "E4f", "E4g")]


def test_that_of_the_whole_tenant_is_for_who_decides_over_its_money(tenant_id, mails, monkeypatch):
    m = money(tenant_id)
    first = m.budget("10", tenant_wide=True)
    m.dispatched("1")
    due = begins_at(next_month(this_month())) - NOTICE
    watch(monkeypatch, due)
    see_to_next_month(m.ctx, budget_id=first, due_at=due)
    bring(m.world.tenant)
    told_all = told(m.ctx, "budget-ending")
    assert m.world.tenant_admin.actor.subject in told_all
    assert m.world.finance.actor.subject not in told_all, "the grant is held in one project alone"
    assert "in a project without a budget of its own" in mails[0].body
