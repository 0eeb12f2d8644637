"""What the search finds of the releases."""

from django.db.models import Q
from django.urls import reverse

from factory.console.searching import SHOWN, Hit, SearchResults, Sought, finder
from factory.console.show import commit_in_short, seen
from factory.kernel.context import Context
from factory.kernel.permissions import may
from registry.models import Release

NEWEST = 5_000


@finder(30)
def releases(ctx: Context, what: Sought) -> SearchResults | None:
    """Releases by id, name, version, commit, author or hash."""
    if not may(ctx, "ListReleases"):
        return None
    rows = Release.objects.select_related("asset")
    looked = f"Among the tenant's newest {NEWEST:,}."
    if what.id is not None:
        found = tuple(_hit(row, exact=True) for row in rows.filter(pk=what.id))
        return SearchResults("Releases", found, looked)
    newest = Release.objects.order_by("-created_at", "-id").values("pk")[:NEWEST]
    name, _, version = what.text.partition("@")
    named = Q(asset__name__icontains=name, semver__startswith=version) if version else Q()
    if not version:
        named = Q(asset__name__icontains=name) | Q(semver=name) | Q(author__icontains=name)
        named |= Q(closure__hash=name)
    if what.commit:
        named |= Q(commit__startswith=what.commit)
    rows = rows.filter(named, pk__in=newest).order_by("-created_at", "-id")
    return SearchResults("Releases", tuple(_hit(row) for row in rows[:SHOWN]), looked)


def _hit(row: Release, *, exact: bool = False) -> Hit:
    return Hit(
        title=f"{row.asset.name}@{row.semver}",
        url=reverse("admin:registry_release_change", args=[row.id]),
        state=row.state,
        note=f"commit {commit_in_short(row.commit)}, by {seen(row.author)}, {row.created_at:%d %b %Y} UTC",
        exact=exact,
    )
