"""Which tenants a pool of workers serves, from the command line of whoever runs the platform."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.context import system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects import selectors as projects
from runs.commands import leave_tenant, serve_tenant
from runs.models import WorkerPool


class Command(BaseCommand):
    help = (
        "Show the pools of workers, or say which tenants one of them serves; it is made by its first tenant."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("pool", nargs="?", help="none shows all of them")
        parser.add_argument("--serve", action="append", default=[], metavar="TENANT")
        parser.add_argument("--leave", action="append", default=[], metavar="TENANT",
                            help="at once: what its workers hold of it runs out")  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["pool"]
        if name is None and (options["serve"] or options["leave"]):
            raise CommandError("Name the pool that should serve or leave a tenant.")
        for tenant_id in [*options["serve"], *options["leave"]]:
            self._require_tenant(tenant_id)
        try:
            for tenant_id in options["serve"]:
                serve_tenant(system(tenant_id, "pool"), pool=name, tenant_id=tenant_id)
            for tenant_id in options["leave"]:
                leave_tenant(system(tenant_id, "pool"), pool=name, tenant_id=tenant_id)
        except DomainError as refusal:
            reasons = "; ".join(fault.detail for fault in refusal.errors)
            raise CommandError(f"{refusal.detail} {reasons}".strip()) from refusal
        self._show(name)

    def _require_tenant(self, tenant_id: str) -> None:
        with reading(system(tenant_id, "pool")):
            if projects.tenant(tenant_id) is None:
                raise CommandError(f"There is no tenant {tenant_id}; manage.py onboard makes one.")

    def _show(self, name: str | None) -> None:
        rows = WorkerPool.objects.order_by("name")
        pools = list(rows if name is None else rows.filter(pk=name))
        if not pools:
            raise CommandError("There is no pool yet." if name is None else f"There is no pool {name}.")
        for row in pools:
            self.stdout.write(f"{row.name}: {', '.join(row.tenants) or 'serves nobody'}")
