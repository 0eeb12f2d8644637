"""The words of the product are those that were promised; those of its first sketch stand nowhere."""

import re
from collections.abc import Iterable

import pytest
from django.apps import apps
from django.db.models import TextChoices

from approvals.states import ApprovalState
from factory.kernel.commanding import commands
from factory.kernel.events import topics
from factory.kernel.permissions import table
from projects.states import Role
from runs.states import ATTEMPT_ACTIVE, AttemptState, FailureClass, RunState, StepState
from tests.architecture.source import ROOT, calls, sources

RUN = ("Accepted", "Running", "WaitingForApproval", "Cancelling", "Completed", "Failed", "Cancelled")
STEP = ("Pending", "Dispatched", "Running", "Succeeded", "Failed", "Skipped", "Cancelled")
OUTCOMES = ("Succeeded", "Failed", "TimedOut", "Cancelled", "Uncertain")
APPROVAL = ("Pending", "Approved", "Rejected", "Expired", "Stale", "Cancelled")
CLASSES = ("transient", "permanent", "validation", "policy-denied", "budget", "cancellation", "uncertain")


@pytest.mark.parametrize(
    ("words", "promised"),
    [
        pytest.param(RunState, RUN, marks=pytest.mark.requirement("RUN-04", "ARC-03", "ARC-06")),
        pytest.param(StepState, STEP, marks=pytest.mark.requirement("STP-02", "ARC-04")),
        pytest.param(set(AttemptState) - ATTEMPT_ACTIVE, OUTCOMES, marks=pytest.mark.requirement("ATT-02")),
        pytest.param(ApprovalState, APPROVAL, marks=pytest.mark.requirement("APR-02")),
        pytest.param(FailureClass, CLASSES, marks=pytest.mark.requirement("RUN-19", "ARC-21")),
    ],
)
def test_the_words_are_those_that_were_promised(
    words: Iterable[TextChoices], promised: Iterable[str]
) -> None:
    assert {str(word) for word in words} == set(promised)


def names_in_use() -> set[str]:
    """Return what the product calls its classes, functions, operations, roles and events."""
    defined = {word for s in sources() for word in re.findall(r"^ *(?:class|def) (\w+)", s.text, re.M)}
    return {*defined, *table, *Role.values, *topics()}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("Compensat|Compensation", marks=pytest.mark.requirement("ARC-09", "ARC-25")),
        pytest.param("Task(Assign|Reassign|Completed|Failed)", marks=pytest.mark.requirement("ARC-14")),
        pytest.param("Grant_?Approval|ApprovalService", marks=pytest.mark.requirement("ARC-18")),
        pytest.param("Release_?Manager", marks=pytest.mark.requirement("ARC-19")),
        pytest.param("Coordinator|Orchestrator", marks=pytest.mark.requirement("ARC-23")),
        pytest.param("Workflow_?(Step|Instance)|Escalat", marks=pytest.mark.requirement("ARC-25")),
        pytest.param("Assign_?Agent_?Task|Model_?Policy", marks=pytest.mark.requirement("ARC-28")),
    ],
)
def test_words_of_the_first_sketch_stand_nowhere(words: str) -> None:
    assert sorted(name for name in names_in_use() if re.search(words, name, re.I)) == []


@pytest.mark.requirement("LTR-01", "LTR-06", "ARC-12")
def test_no_run_is_ever_played_again() -> None:
    """The journal recovers what was true; work that is done anew is another run."""
    assert [name for name in {*commands(), *table} if re.search("replay|re-?play|shadow", name, re.I)] == []
    assert [s.name for s in sources() if re.search(r'"[^"]*/replay\b', s.text)] == []


@pytest.mark.requirement("RUN-29", "ARC-13")
def test_how_far_a_run_is_stands_in_the_rows_of_runs_alone() -> None:
    progress = [set(words.values) for words in (RunState, StepState, AttemptState)]
    others = [model for model in apps.get_models() if model._meta.app_label != "runs"]
    kept = [
        f"{model.__name__}.{field.name}"
        for model in others
        for field in model._meta.fields
        if {value for value, _ in field.flatchoices} in progress
    ]
    assert kept == []
    assert [
        model.__name__ for model in others if any(f.name == "run_state" for f in model._meta.fields)
    ] == []


VERDICTS = {
    "runs/commands/expire_lease.py",
    "runs/commands/recover_lease.py",
    "runs/commands/report_outcome.py",
    "runs/operations/ending.py",
}


@pytest.mark.requirement("JOB-13")
def test_of_an_attempt_that_nobody_reports_only_time_a_restore_and_an_end_decide() -> None:
    places = {
        s.name for s in sources() for verdict in ("time_out", "mark_uncertain") for _ in calls(s, verdict)
    }
    assert places == VERDICTS
    assert {name: set(table[name].kinds) for name in ("ExpireLease", "RecoverLease")} == {
        "ExpireLease": {"system"},
        "RecoverLease": {"system"},
    }


@pytest.mark.requirement("DEP-08")
def test_the_product_is_laid_out_as_was_promised() -> None:
    for name in ("manage.py", "factory", "runs", "approvals", "usage", "registry", "projects", "config"):
        assert (ROOT / name).exists(), name
    needed = (ROOT / "requirements.txt").read_text()
    for library in ("django", "djangorestframework", "django-fsm-2", "celery", "redis", "psycopg"):
        assert re.search(rf"^{library}(\[.*\])?==", needed, re.I | re.M), library
