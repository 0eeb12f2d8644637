"""A database that goes away, or stops looking: what is said, what is kept, and what nobody knows."""

from typing import Any
from uuid import UUID

import pytest
from django.db import InterfaceError, OperationalError
from django.urls import reverse

from factory.console import scope
from factory.messaging.webhooks.commands import change_webhook, create_webhook
from factory.messaging.webhooks.signing import new_secret
from runs.admin.actions import bulk
from runs.commands import cancel_run
from tests.console.test_pages import signed_in
from tests.support.running import House

RUNS = "/admin/runs/run/"


def text(answer: Any) -> str:
    return str(answer.content.decode())


@pytest.mark.parametrize("fault", [OperationalError("away"), InterfaceError("connection already closed")])
def test_a_database_that_is_away_before_any_page_is_said_to_be(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    client = signed_in(House(tenant_id).world.operator)
    client.raise_request_exception = False

    def away(*args: object) -> None:
        raise fault

    monkeypatch.setattr(scope, "enter", away)
    answer = client.get(RUNS)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert text(answer) == "The database is away. Nothing was lost; try again after Retry-After."


@pytest.mark.requirement("RUN-33")
def test_what_was_done_before_the_database_went_away_is_told(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tenant_id)
    runs = [house.run(), house.run(), house.run()]
    told: list[UUID] = []

    def cancel(ctx: Any, *, run_id: UUID, reason: str) -> str:
        told.append(run_id)
        if len(told) == 2:
            raise OperationalError("server closed the connection unexpectedly")
        return cancel_run(ctx, run_id=run_id, reason=reason)

    monkeypatch.setattr(bulk, "cancel_run", cancel)
    client = signed_in(house.world.operator)
    sent = {"run": [str(each) for each in runs], "reason": "wrong"}
    page = text(client.post(reverse("admin:runs_cancel_many"), sent, follow=True))
    assert "1 of 3 runs asked to stop" in page
    assert "Look whether it was done before you send it again." in page
    assert "The database had gone away before its turn came." in page
    assert len(told) == 2
    assert sorted(house.state(each) for each in runs) == ["Accepted", "Accepted", "Cancelled"]


def test_an_act_whose_page_fails_is_not_said_to_be_undone(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tenant_id)

    def away(*args: object, **named: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(bulk, "keep_fates", away)
    sent = {"run": [str(house.run())], "reason": "wrong"}
    answer = signed_in(house.world.operator).post(reverse("admin:runs_cancel_many"), sent)
    assert answer.status_code == 503
    assert "It is not known whether it was done" in text(answer)
    assert "Nothing was" not in text(answer)


def test_who_mends_a_field_does_not_overwrite_what_another_has_changed(tenant_id: str) -> None:
    house = House(tenant_id)
    world = house.world
    first = {"url": "https://hooks.example/a", "topics": [], "consumer": "", "description": "first"}
    webhook = create_webhook(world.workspace_admin, **first, secret=new_secret())
    client, page = signed_in(world.workspace_admin), reverse("admin:factory_webhook_change", args=[webhook])
    change_webhook(
        world.workspace_admin, webhook_id=UUID(webhook), version=1,
        url="https://other.example/hook", topics=[], consumer="", description="theirs",
    )  # fmt: skip
    mine = {"url": "no address", "description": "mine", "version": "1"}
    refused = client.post(page, mine)
    assert 'name="version" value="1"' in text(refused), "The version that was seen"
    late = client.post(page, mine | {"url": "https://mine.example/hook"})
    assert late.status_code == 409
    assert 'name="version" value="2"' in text(late)
