"""The state machines that run are those that are declared: no edge more, and none less."""

import pytest
from django_fsm import TransitionNotAllowed

from factory.kernel.models.base import Journaled
from runs.models import Attempt, Lease, Run, Step
from runs.states import AttemptState, LeaseState, RunState, StepState

MACHINES = [
    (Run, RunState, {"Completed", "Failed", "Cancelled"}),
    (Step, StepState, {"Succeeded", "Failed", "Skipped"}),
    (Attempt, AttemptState, {"Succeeded", "Failed", "TimedOut", "Cancelled", "Uncertain"}),
    (Lease, LeaseState, {"Released", "Settled", "Expired", "Revoked"}),
]


def transitions(model: type[Journaled]) -> dict[str, tuple[set[str], str]]:
    """Each method with the states that it leaves and the one that it reaches."""
    found: dict[str, tuple[set[str], str]] = {}
    for each in model._meta.get_field("state").get_all_transitions(model):
        sources, _ = found.setdefault(each.name, (set(), str(each.target)))
        sources.add(str(each.source))
    return found


@pytest.mark.requirement("STP-03")
@pytest.mark.parametrize(("model", "states", "terminal"), MACHINES)
def test_the_methods_are_the_declared_edges(model, states, terminal) -> None:
    moves = {(source, target) for sources, target in transitions(model).values() for source in sources}
    declared = {(edge.source, edge.target) for edge in model.lifecycle.edges}
    born = {edge for edge in declared if not edge[0]}
    assert moves | born == declared | {move for move in moves if not move[0]}
    assert {move for move in moves if not move[0]} <= born
    assert {source for source, target in moves if source != target} & terminal == set()
    assert model.lifecycle.states <= set(states.values)


@pytest.mark.requirement("RUN-18", "STP-03")
@pytest.mark.parametrize(("model", "states", "terminal"), MACHINES)
def test_every_other_state_refuses_the_method(model, states, terminal) -> None:
    for name, (sources, _) in transitions(model).items():
        for state in set(states.values) - sources:
            row = model(state=state)
            with pytest.raises((TransitionNotAllowed, TypeError)) as refused:
                getattr(row, name)()
            assert refused.type is TransitionNotAllowed, f"{model.__name__}.{name} from {state}"


@pytest.mark.parametrize(("model", "states", "terminal"), MACHINES)
def test_a_state_cannot_be_assigned(model, states, terminal) -> None:
    row = model(state=sorted(states.values)[0])
    with pytest.raises(AttributeError):
        row.state = sorted(states.values)[1]
