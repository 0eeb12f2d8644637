"""What of the kernel stands on the first page: events set aside, how telling lags, whether evidence holds."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count, OuterRef
from django.db.models.functions import Coalesce
from django.template.defaultfilters import pluralize
from django.urls import reverse

from factory.console.dashboard import MOST, DashboardQuery, Figure, Need, Needs, count, figure, needs, number
from factory.console.project_of import findings_in
from factory.console.show import seen, span
from factory.kernel.context import Context
from factory.kernel.models import Finding, Verification
from factory.kernel.permissions import may
from factory.messaging.consumers import HANDLERS, STREAMS, SetAside, set_aside
from factory.messaging.lag import MOST as LOOKED_AT
from factory.messaging.lag import backlog, set_aside_count

TARGET = timedelta(minutes=5)
"""Within that an event has reached its handlers and the streams."""
OVERDUE = timedelta(hours=26)
"""Verification runs once a day; later than that it is late."""
ITSELF = {HANDLERS: "the product's own handlers", STREAMS: "Redis Streams"}
READS_EVIDENCE = frozenset({"WorkspaceAdmin", "PlatformAdmin", "Operator"})


def reads_evidence(ctx: Context) -> bool:
    """Tell whether journal and audit log are open to somebody."""
    return may(ctx, "ReadAudit") and ("audit" in ctx.actor.grants or bool(ctx.actor.roles & READS_EVIDENCE))


@count("set aside")
def events_count(ctx: Context) -> int | None:
    """Return how many events were set aside, for those who can offer them again."""
    return set_aside_count(ctx, MOST + 1) if may(ctx, "RetryDelivery") else None


@needs(40)
def events_set_aside(look: DashboardQuery) -> Needs | None:
    """Events that did not reach somebody, one line for each consumer."""
    if not may(look.ctx, "RetryDelivery"):
        return None
    many = look.counts.get("set aside", 0)
    by_consumer: dict[str, list[SetAside]] = defaultdict(list)
    for each in set_aside(look.ctx, MOST + 1) if many else ():
        by_consumer[ITSELF.get(each.kind, each.consumer)].append(each)
    items = tuple(_aside(name, found) for name, found in by_consumer.items())
    url = reverse("admin:factory_consumers")
    return Needs(items, len(items), "no event is set aside", more_url=url, more_label="All consumers")


def _aside(consumer: str, found: Sequence[SetAside]) -> Need:
    oldest, runs = found[0], len({each.stream_id for each in found})
    many = "1 event" if len(found) == 1 else f"{number(len(found))} events"
    held = "Only its run is" if runs == 1 else f"Only these {runs} runs are"
    return Need(
        title=f"{many} did not reach {seen(consumer)}",
        url=reverse("admin:factory_consumers"),
        state="Set aside",
        tone="bad",
        action="Look",
        since=oldest.set_aside_at,
        where=f"{oldest.attempts} tries each; the last said: {seen(oldest.reason)[:160] or 'nothing'}. "
        f"{held} held up for this receiver, everything else flows.",
    )


@needs(55)
def relay_lags(look: DashboardQuery) -> Needs | None:
    """Tell whether events are told at all."""
    if not may(look.ctx, "RetryDelivery"):
        return None
    found = look.once(backlog)
    late = found.oldest_at is not None and found.lag(look.at) > TARGET.total_seconds()
    many = f"{found.count}+" if found.count >= LOOKED_AT else str(found.count)
    item = Need(
        title=f"Events have waited for longer than {span(TARGET.total_seconds()).removesuffix(' 0 s')}",
        url=reverse("admin:factory_consumers"),
        state="Lags",
        tone="bad",
        action="Look",
        since=found.oldest_at or look.at,
        where=f"{many} wait. Runs go on as far as they can; see whether the relay runs.",
    )
    return Needs((item,) if late else (), int(late), "the relay keeps up")


@figure(50)
def outbox_lag(look: DashboardQuery) -> Figure | None:
    """Return how far telling is behind."""
    if not may(look.ctx, "ListConsumers"):
        return None
    found, aside = look.once(backlog), look.counts.get("set aside", 0)
    lag = found.lag(look.at)
    late = lag > TARGET.total_seconds()
    target = f"{int(TARGET.total_seconds() // 60)} min"
    note = f"{'Past' if late else 'Within'} the target of {target}."
    if aside:
        note += " 1 event is set aside." if aside == 1 else f" {number(aside)} events are set aside."
    value = f"{lag:.1f} s" if lag < 60 else span(lag)
    return Figure(
        "Outbox lag", value if found.count else "Nothing waits", note, url=reverse("admin:factory_consumers"),
        tone="bad" if late else "plain", alarm="Events are told late." if late else "",
    )  # fmt: skip


@figure(60)
def journal(look: DashboardQuery) -> Figure | None:
    """Return what the last verification said of the evidence here."""
    if not reads_evidence(look.ctx):
        return None
    last, found = look.once(_last)
    url = reverse("admin:factory_verification_changelist")
    if last is None:
        told = "Every rule is checked once a day, and with manage.py verify."
        return Figure("Journal", "Not checked yet", told, url=url)
    many = "1 violation" if found == 1 else f"{found} violations"
    state = many if found else "Not all checked" if last.unchecked else "Intact"
    anchor = last.anchors.partition(" by ")[0]
    note = f"{last.rules} rules checked at {last.started_at:%d %b %H:%M} UTC; "
    note += f"{_anchored(anchor)}." if anchor else "no anchor was taken yet."
    late = look.at - last.started_at > OVERDUE
    return Figure(
        "Journal", state, note + (" The next check is overdue." if late else ""), url=url,
        tone="bad" if found or last.unchecked else "plain",
        alarm="The evidence has been violated." if found else "",
    )  # fmt: skip


def _anchored(standing: str) -> str:
    """`anchor 12 of 2026-11-29T06:00:00.1+00:00` as people say it."""
    name, _, at = standing.partition(" of ")
    return f"{name} taken {at[:10]} {at[11:16]} UTC" if at else name


def _last(ctx: Context) -> tuple[Verification | None, int]:
    """The newest verification, and what it found: in this tenant, or of the project in which somebody stands,
    as the list does to which it leads; and of the walls that stand around all."""
    found = Finding.objects.filter(verification_id=OuterRef("pk"))
    if ctx.project_id is not None:
        found = findings_in(found, ctx)
    found = found.order_by().values("verification_id")
    here = Coalesce(found.annotate(many=Count("pk")).values("many"), 0)
    last = Verification.objects.annotate(here=here).order_by("-started_at", "-id").first()
    return last, last.here + len(last.walls) if last else 0


@needs(30)
def findings(look: DashboardQuery) -> Needs | None:
    """Return what was found wrong, for those who read the evidence."""
    if not reads_evidence(look.ctx):
        return None
    last, many = look.once(_last)
    if last is None:
        return None
    item = Need(
        title=f"The last verification found {many} violation{pluralize(many)}",
        url=reverse("admin:factory_finding_changelist"),
        state="Violated",
        tone="bad",
        action="Look",
        since=last.started_at,
        where="A run concerned stands still until a PlatformAdmin has looked at it.",
    )
    return Needs((item,) if many else (), int(bool(many)), "no rule was found violated")
