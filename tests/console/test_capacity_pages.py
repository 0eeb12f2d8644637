"""The pages of workers and settings, and closing what an Operator was asked to look at."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse

from factory.kernel import clock, reloading
from factory.kernel.changing import change_setting
from factory.kernel.context import platform
from runs.commands import expire_lease, serve_tenant
from runs.models import Worker
from tests.console.test_pages import signed_in
from tests.support.receipts import effect
from tests.support.running import House

WORKERS, SETTINGS = "admin:runs_worker_changelist", "admin:factory_setting_changelist"


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def test_an_operator_drains_a_worker_and_ends_it(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    row = Worker.objects.get(pool_id=house.pool)
    page = reverse("admin:runs_worker_change", args=[row.pk])
    operator, observer = signed_in(house.world.operator), signed_in(house.world.observer)
    assert "Drain this worker" in operator.get(page).content.decode()
    assert "Drain this worker" not in observer.get(page).content.decode()
    form = {"worker": str(row.pk), "reason": "the host is updated"}
    for act in ("drain", "undrain"):
        refused = observer.post(reverse(f"admin:runs_worker_{act}"), form)
        assert refused.status_code == 403
        assert "An Operator or a PlatformAdmin drains workers." in refused.content.decode()
    assert len(worker.poll()) == 1, "An Observer drains nothing."
    text = operator.post(reverse("admin:runs_worker_drain"), form, follow=True).content.decode()
    assert f"{house.world.operator.actor.subject} drained it" in text
    assert worker.poll() == []
    workers = operator.get(reverse(WORKERS)).content.decode()
    assert "Draining" in workers
    assert "workers hold 0 of its attempts, and are offered" in workers
    operator.post(reverse("admin:runs_worker_undrain"), form)
    assert [work.run_id for work in worker.poll()] == [run_id]
    Worker.objects.filter(pk=row.pk).update(last_seen_at=clock.now() - timedelta(minutes=9))
    silent = operator.get(page).content.decode()
    for said in ("Offline", "it gets nothing until it reports again", "9 min 0 s ago", "everything"):
        assert said in silent
    assert "It is offered work whenever" not in silent
    foreign = House(f"{house.tenant}-b")
    assert signed_in(foreign.world.operator).post(reverse("admin:runs_worker_drain"), form).status_code == 404


def test_workers_are_listed_and_drained_in_the_whole_tenant_where_no_run_is_read(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    worker.take()
    admin = signed_in(house.world.platform_admin)
    admin.post("/admin/place/", {"place": f"{house.tenant}/"})
    row = Worker.objects.get(pool_id=house.pool)
    page = reverse("admin:runs_worker_change", args=[row.pk])
    listed = admin.get(reverse(WORKERS)).content.decode()
    assert f'href="{reverse(WORKERS)}"' in admin.get("/admin/").content.decode()
    assert f'href="{page}' in listed
    shown = admin.get(page).content.decode()
    assert str(run_id)[-8:] in shown
    assert reverse("admin:runs_run_change", args=[run_id]) not in shown, "It opens in its project alone"
    form = {"worker": str(row.pk), "reason": "the host is updated"}
    told = admin.post(reverse("admin:runs_worker_drain"), form, follow=True).content.decode()
    assert f"{house.world.platform_admin.actor.subject} drained it" in told
    in_project = signed_in(house.world.operator).get(page).content.decode()
    assert reverse("admin:runs_run_change", args=[run_id]) in in_project


def test_the_quota_and_why_a_run_waits_are_told_and_changed(house: House) -> None:
    admin, operator = signed_in(house.world.platform_admin), signed_in(house.world.operator)
    assert "It has no quota." in operator.get(reverse(WORKERS)).content.decode()
    form = {"open_attempts": "0", "reason": "they have not paid"}
    refused = operator.post(reverse("admin:runs_quota"), form)
    assert refused.status_code == 403
    assert "A PlatformAdmin changes the quota." in refused.content.decode()
    run_id, worker = house.run(), house.hand()
    assert len(worker.poll()) == 1
    other = house.run()
    text = admin.post(reverse("admin:runs_quota"), form, follow=True).content.decode()
    assert "At most 0 attempts" in text
    assert worker.poll() != []  # what was offered before is offered still
    page = operator.get(reverse("admin:runs_run_change", args=[other])).content.decode()
    assert "quota of 0 open attempts is used up" in page
    assert (
        "has not acquired" in operator.get(reverse("admin:runs_run_change", args=[run_id])).content.decode()
    )
    assert (
        "whole number"
        in admin.post(
            reverse("admin:runs_quota"), form | {"open_attempts": "many"}, follow=True
        ).content.decode()
    )


def test_settings_are_shown_and_belong_to_no_tenant(house: House) -> None:
    admin, name = signed_in(house.world.platform_admin), "FACTORY_LEASES_DURATION_SECONDS"
    assert signed_in(house.world.observer).get(reverse(SETTINGS)).status_code in (403, 404)
    change_setting(platform(), name=name, value=77, reason="another customer's slow link")
    try:
        text = admin.get(reverse(SETTINGS)).content.decode()
        for said in ("<dd>77 seconds<small>between 1 and 3600 seconds", "<h2>Duration of a lease</h2>",
                     "They belong to no tenant", "manage.py setting"):  # fmt: skip
            assert said in text
        assert "another customer" not in text, "The platform's reasons are not for its tenants."
        assert '<form method="post" action="/admin/factory/setting' not in text
        form = {"name": name, "value": "1", "reason": "mine"}
        for path in ("", "set/", f"{name}/change/", "add/"):
            answer = admin.post(reverse(SETTINGS) + path, form, follow=True)
            assert answer.status_code in (403, 404, 405), path
        assert reloading.value(name) == 77
    finally:
        change_setting(platform(), name=name, value=None, reason="it is well")
    assert reloading.value(name) != 77


def test_of_a_pool_that_serves_several_tenants_nobody_of_one_stops_a_worker(house: House) -> None:
    house.hand()
    serve_tenant(house.system, pool=house.pool, tenant_id=f"{house.tenant}-b")
    admin, row = signed_in(house.world.platform_admin), Worker.objects.get(pool_id=house.pool)
    page = admin.get(reverse("admin:runs_worker_change", args=[row.pk])).content.decode()
    assert "It works for other tenants too" in page
    for act in ("admin:runs_worker_drain", "admin:runs_revoke_worker"):
        assert f'"{reverse(act, args=[row.pk] if "revoke" in act else [])}"' not in page
    revoke = reverse("admin:runs_revoke_worker", args=[row.pk])
    assert (admin.get(revoke).status_code, admin.post(revoke, {"reason": "x"}).status_code) == (403, 403)
    admin.post(reverse("admin:runs_worker_drain"), {"worker": str(row.pk), "reason": "mine"})
    row.refresh_from_db()
    assert row.draining_at is None


def test_a_quota_that_the_platform_set_is_not_changed_by_the_tenant(house: House) -> None:
    form = {"open_attempts": "", "reason": "more"}
    admin = signed_in(house.world.platform_admin)
    call_command("quota", house.tenant, "1", reason="they have not paid")
    assert "Whoever runs the platform set this quota" in admin.get(reverse(WORKERS)).content.decode()
    told = admin.post(reverse("admin:runs_quota"), form, follow=True).content.decode()
    assert "Whoever runs the platform set this quota, and changes it" in told
    assert "At most 1 attempt " in admin.get(reverse(WORKERS)).content.decode()
    call_command("quota", house.tenant, lift=True, reason="they have paid")
    admin.post(reverse("admin:runs_quota"), form | {"open_attempts": "3"})
    assert "At most 3 attempts" in admin.get(reverse(WORKERS)).content.decode()


def test_a_late_effect_is_closed_on_the_runs_page(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id)
    expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)
    worker.receipts(work, effect(None))
    step = house.steps(run_id)["publish"]
    page = reverse("admin:runs_run_change", args=[run_id])
    operator = signed_in(house.world.operator)
    assert "a holder that had lost its lease" in operator.get(page).content.decode()
    form = {"reason": "nothing is there", "version": step.version}
    operator.post(reverse("admin:runs_attention", args=[run_id, step.id]), form)
    assert house.steps(run_id)["publish"].attention == ""
    assert "a holder that had lost its lease" not in operator.get(page).content.decode()
