"""Which pools of workers there are. The kernel asks; the app that keeps them answers."""

from collections.abc import Callable, Iterable

_registered: list[Callable[[], Iterable[str]]] = []


def register_pools(names: Callable[[], Iterable[str]]) -> None:
    """Called once, when the app that keeps the pools is ready."""
    _registered[:] = [names]


def known_pools() -> list[str]:
    """The names of all pools, sorted; none where no app keeps any."""
    return sorted(_registered[0]()) if _registered else []
