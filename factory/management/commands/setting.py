"""Show and change the settings that hold without a restart, on the platform's host."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.kernel import reloading
from factory.kernel.changing import change_setting
from factory.kernel.context import PLATFORM, platform
from factory.kernel.errors import DomainError
from factory.kernel.models import AuditEntry
from factory.kernel.reloading import Reloadable
from factory.kernel.tenancy import reading


class Command(BaseCommand):
    help = (
        "Shows the settings that change without a restart: what holds, why, and within which bounds. With a "
        "NAME and a VALUE, or with --reset, it changes one for every tenant; each process follows within "
        "moments, and the change is in the platform's own chain, which belongs to no tenant."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", help="the setting; without one all are shown")
        parser.add_argument("value", nargs="?", type=int, help="the whole number that shall hold from now on")
        parser.add_argument("--reset", action="store_true", help="let the variable have its say again")
        parser.add_argument("--reason", default="", help="why; needed for every change")
        parser.add_argument("--log", action="store_true", help="show who changed what, and why, newest first")
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        name, value = options["name"], options["value"]
        if name is not None and reloading.bounds(name) is None:
            known = ", ".join(each.name for each in reloading.every())
            raise CommandError(f"{name} is no setting that changes without a restart. There are: {known}.")
        if options["reset"] and (name is None or value is not None):
            raise CommandError("--reset takes the name of the setting, and no value.")
        if value is not None or options["reset"]:
            self._change(name, value, options["reason"])
        if options["log"]:
            self._print(_log(name), _log_line, as_json=options["json"])
        else:
            found = [each for each in reloading.every() if name in (None, each.name)]
            self._print([_facts(each) for each in found], _line, as_json=options["json"])

    def _change(self, name: str, value: int | None, reason: str) -> None:
        try:
            change_setting(platform(), name=name, value=value, reason=reason)
        except DomainError as refusal:
            raise CommandError(refusal.in_words()) from refusal

    def _print(self, rows: list[dict[str, Any]], line: Any, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            self.stdout.write(line(row))


def _facts(found: Reloadable) -> dict[str, Any]:
    row = found.row
    return {
        "name": found.name,
        "value": found.value,
        "unit": found.unit,
        "source": "variable" if row is None else "row",
        "variable": found.variable,
        "least": found.least,
        "most": found.most,
        "changedAt": None if row is None else row.changed_at.isoformat(),
        "changedBy": None if row is None else row.changed_by,
        "reason": None if row is None else row.reason,
    }


def _line(row: dict[str, Any]) -> str:
    told = f"{row['name']} = {row['value']} {row['unit']} ({row['least']} to {row['most']})"
    if row["source"] == "variable":
        return f"{told}, as its variable says"
    who = f"{row['changedBy']} at {row['changedAt']}"
    return f"{told}, by {who}: {row['reason']} (its variable says {row['variable']})"


def _log(name: str | None) -> list[dict[str, Any]]:
    """Return the changes that the platform's chain holds, newest first."""
    with reading(platform()):
        rows = AuditEntry.objects.filter(tenant_id=PLATFORM, action="ChangeSetting", outcome="done")
        if name is not None:
            rows = rows.filter(subject=f"setting:{name}")
        return [
            {
                "name": row.subject.removeprefix("setting:"),
                "before": row.detail["before"],
                "after": row.detail["after"],
                "at": row.occurred_at.isoformat(),
                "by": row.actor,
                "account": row.detail.get("account", ""),
                "reason": row.reason,
            }
            for row in rows.order_by("-sequence")
        ]


def _log_line(row: dict[str, Any]) -> str:
    said = {name: "its variable" if row[name] is None else row[name] for name in ("before", "after")}
    who = f"{row['by']} ({row['account']})" if row["account"] else row["by"]
    return f"{row['at']} {row['name']}: {said['before']} -> {said['after']}, by {who}: {row['reason']}"
