"""What the platform's host does about a worker, told to every tenant that it works for."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError

from factory.kernel.context import Context, platform, system
from factory.kernel.errors import DomainError
from runs.models import Worker


def add_worker(parser: ArgumentParser) -> None:
    """Take the worker's pool and name, and the reason."""
    parser.add_argument("pool")
    parser.add_argument("name", help="the worker's name in the pool")
    parser.add_argument("--reason", required=True)


def for_everybody(options: dict[str, Any], act: Callable[[Context, Worker, str], object]) -> Worker:
    """Do it in the platform's own scope, and in that of each tenant, whose audit log then says so too."""
    rows = Worker.objects.select_related("pool")
    worker = rows.filter(pool_id=options["pool"], name=options["name"]).first()
    if worker is None:
        raise CommandError(f"There is no worker {options['name']} in a pool {options['pool']}.")
    tenants = [system(tenant_id, "host", channel="cli") for tenant_id in worker.pool.tenants]
    try:
        for ctx in (platform(), *tenants):
            act(ctx, worker, options["reason"])
    except DomainError as refusal:
        raise CommandError(refusal.in_words()) from refusal
    return worker
