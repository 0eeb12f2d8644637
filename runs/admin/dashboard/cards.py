"""What of the runs stands on the first page: what an Operator settles, how things stand, one's own runs."""

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlencode

from django.template.defaultfilters import pluralize
from django.urls import reverse

from factory.console.dashboard import (
    MOST,
    Card,
    CardLine,
    DashboardQuery,
    Figure,
    FigureShare,
    Need,
    Needs,
    Tone,
    card,
    count,
    figure,
    in_words,
    needs,
)
from factory.console.show import span, tone
from factory.kernel import clock
from factory.kernel.amounts import cost, usd
from factory.kernel.context import Context
from factory.kernel.permissions import may
from runs.models import Run, Step
from runs.operations.timing import grace
from runs.selectors.figures import Crew, attention_steps, crew, lapsed, open_by_state, runs_in
from runs.selectors.limits import limit_of
from runs.selectors.reasons import Reasons
from runs.selectors.runs import attempts_of
from runs.states import RUN_ACTIVE, Attention, PageState, RunState
from usage.selectors import UsageView, usage_of_runs

SHOWN = 6
OWN = 4
LATELY = timedelta(hours=24)
"""Who has been silent for longer is gone, and no news any more."""
TARGET = timedelta(minutes=5)
"""A lease is recovered within seconds; one that stands for so long says that nobody looks."""
ORDER = (RunState.ACCEPTED, RunState.RUNNING, RunState.WAITING, RunState.CANCELLING)
TONES = {
    RunState.ACCEPTED: "plain", RunState.RUNNING: "busy", RunState.WAITING: "wait",
    RunState.CANCELLING: "doubt",
}  # fmt: skip
TOLD = {
    Attention.UNCERTAIN: (
        "Uncertain",
        "Settle",
        "It may or may not have happened; nobody repeats it until you say which.",
    ),
    Attention.VIOLATION: (PageState.VIOLATION, "Look", "It acted without an authorization."),
    Attention.LATE_EFFECT: (
        PageState.LATE_EFFECT,
        "Look",
        "An effect was reported by a holder that had lost its lease, or by a receipt that was refused.",
    ),
}


@count("uncertain")
def uncertain_count(ctx: Context) -> int | None:
    """Return how many steps an Operator has to look at here."""
    if not may(ctx, "ResolveUncertainStep"):
        return None
    found: int = attention_steps(ctx).values("pk")[: MOST + 1].count()
    return found


@needs(10)
def uncertain_attempts(look: DashboardQuery) -> Needs | None:
    """Return what an Operator has to settle, oldest first."""
    if not may(look.ctx, "ResolveUncertainStep"):
        return None
    rows = attention_steps(look.ctx).select_related("run__project", "run__environment").order_by("updated_at")
    many = look.counts.get("uncertain", 0)
    return Needs(
        items=tuple(_settle(row) for row in rows[:SHOWN]) if many else (),
        count=many,
        well="no attempt is uncertain",
        more_url=reverse("admin:runs_step_changelist"),
        more_label="All uncertain attempts",
    )


def _settle(row: Step) -> Need:
    state, action, meaning = TOLD[Attention(row.attention)]
    run = row.run
    where = f"{run.workflow_id} in {run.project.name}"
    where += f", {run.environment.slug}" if run.environment else ""
    return Need(
        title=f"{action if action == 'Settle' else 'Look at'} {row.node_key} of run …{str(row.run_id)[-8:]}",
        url=reverse("admin:runs_run_change", args=[row.run_id]) + f"#{action.lower()}",
        state=state,
        tone="bad" if state == "Violation" else "doubt",
        action=action,
        since=row.updated_at,
        klass=row.side_effect_class,
        where=f"{where}. {meaning}",
        uncertain=True,
    )


@needs(60)
def leases_nobody_recovers(look: DashboardQuery) -> Needs | None:
    """Tell whether time alone still moves what it has to: leases that are over and stand."""
    if not may(look.ctx, "DrainWorkerByOperator"):
        return None
    before = look.at - grace() - TARGET
    ends = lapsed(look.ctx, before)
    many = len(ends)
    item = Need(
        title=("1 lease is" if many == 1 else f"{many} leases are") + " over, and nobody recovers them",
        url=reverse("admin:runs_lease_changelist"),
        state="Lags",
        tone="bad",
        action="Look",
        since=ends[0] if ends else before,
        where="Neither a worker's poll nor the scheduler has taken them back. See whether both run.",
    )
    return Needs((item,) if many else (), 1 if many else 0, "no lease that ended waits long to be recovered")


@figure(10)
def open_runs(look: DashboardQuery) -> Figure | None:
    """Open runs by state."""
    if not may(look.ctx, "ListRuns"):
        return None
    found = open_by_state(look.ctx)
    shares = tuple(FigureShare(TONES[state], found[state], state) for state in ORDER if found.get(state))
    return Figure(
        "Open runs",
        str(sum(share.count for share in shares)),
        ", ".join(f"{share.count} {share.word}" for share in shares) or "None is under way.",
        shares=shares,
        url=reverse("admin:runs_run_changelist"),
    )


@figure(20)
def workers(look: DashboardQuery) -> Figure | None:
    """Return who works, and who has stopped to."""
    if not may(look.ctx, "ListWorkers"):
        return None
    found = crew(look.ctx, look.at, look.at - LATELY, grace())
    url = reverse("admin:runs_worker_changelist")
    whole = found.online + len(found.silent)
    if not whole:
        told = "No worker of this tenant was seen in the last 24 hours: runs wait until one registers."
        return Figure("Workers", "None", told, url=url, tone="bad", alarm="No worker is online.")
    note = f"{found.in_use} of {found.slots} slots in use for this tenant."
    if not found.online:
        note = "Runs wait until one is."
    note += f" {found.draining} {pluralize(found.draining, 'is,are')} draining." if found.draining else ""
    note += _silent(found)
    value = f"{found.online} of {whole}" if found.silent else str(found.online)
    tone: Tone = "plain" if found.online else "bad"
    return Figure("Workers", value, note, "online", url=url, alarm=_alarm(found), tone=tone)


def _silent(found: Crew) -> str:
    said = [f"{name} since {at:%H:%M} UTC" for _, name, at in found.silent[:3]]
    more = len(found.silent) - len(said)
    if not said:
        return ""
    names = ", ".join(said) + (f" and {more} more" if more > 0 else "")
    if len(found.silent) == 1:
        return " " + names.replace(" since", " has been silent since") + "."
    return f" Silent: {names}."


def _held(found: Crew, who: str) -> str:
    """Return what becomes of what silent workers held."""
    if not found.overdue:
        return f"what {who} held is taken back some seconds after its lease has ended."
    leases = "1 lease is" if found.overdue == 1 else f"{found.overdue} leases are"
    return f"{leases} over, and not taken back yet."


def _alarm(found: Crew) -> str:
    if not found.silent:
        return "" if found.online else "No worker is online."
    if len(found.silent) == 1:
        return f"The worker {found.silent[0][1]} has fallen silent; {_held(found, 'it')}"
    many = in_words(len(found.silent))
    return f"{many} workers have fallen silent; {_held(found, 'they')}"


@card(20)
def runs_of_mine(ctx: Context) -> Card | None:
    """Return what this person asked for, newest first, and what each waits for; none for who could ask for
    none."""
    if not may(ctx, "ListRuns"):
        return None
    mine = runs_in(ctx).filter(requester_person=ctx.actor.person).order_by("-created_at", "-id")
    rows = list(mine[: OWN + 1])
    if not rows and not may(ctx, "SubmitRun"):
        return None
    yours = urlencode({"requester_person__exact": ctx.actor.person})
    return Card(
        title="Runs that you started",
        items=tuple(_own(rows[:OWN])),
        more_url=f"{reverse('admin:runs_run_changelist')}?{yours}" if len(rows) > OWN else "",
        more_label="These are the newest; see all of yours",
        empty="You have started none here. A run is submitted over the API, from a template, or with "
        "manage.py submit.",
        aside=True,
    )


def _own(rows: Sequence[Run]) -> list[CardLine]:
    used = usage_of_runs([row.id for row in rows])
    running = [row.id for row in rows if row.state in RUN_ACTIVE]
    steps: dict[object, list[Step]] = {}
    for step in Step.objects.filter(run_id__in=running).order_by("ordinal"):
        steps.setdefault(step.run_id, []).append(step)
    return [
        CardLine(
            title=f"{row.workflow_id} …{str(row.id)[-8:]}",
            url=reverse("admin:runs_run_change", args=[row.id]),
            state=row.state,
            tone=tone(row.state),  # type: ignore[arg-type]  # one of the five tones
            note=_note(row, steps.get(row.id, []), used.get(row.id)),
        )
        for row in rows
    ]


def _note(row: Run, steps: Sequence[Step], used: UsageView | None) -> str:
    if row.state in RUN_ACTIVE:
        waits = Reasons(row, steps, attempts_of(row.id)).of_run()
        return waits or f"It goes on; begun {span((clock.now() - row.created_at).total_seconds())} ago."
    spent = cost(used.cost, used.uncertain) if used else "nothing"
    ended = f"{row.finished_at:%d %b %H:%M} UTC, " if row.finished_at else ""
    why = f": {row.failure_class}" if row.failure_class else ""
    return f"{ended}{spent.removesuffix(' USD')} of {usd(limit_of(row))}{why}"
