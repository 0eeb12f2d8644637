"""What pages of the apps below are told of the things above them."""

from collections.abc import Sequence
from uuid import UUID

from factory.console.links import names
from registry.selectors import called_aliases, releases
from runs.models import Run


@names("run")
def run_names(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Runs by the workflow that they follow; the end of the id stands beside it."""
    return dict(Run.objects.filter(pk__in=keys).values_list("pk", "workflow_id"))


@names("alias")
def alias_names(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Aliases as the audit log has them: by their asset and their own name."""
    return called_aliases(keys)


@names("release")
def release_names(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Releases by what people call them: the asset and its version."""
    rows = releases().filter(pk__in=keys).values_list("pk", "asset__name", "semver")
    return {key: f"{asset}@{version}" for key, asset, version in rows}
