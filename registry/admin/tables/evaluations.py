"""The list of what was measured of releases."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from factory.console.base import BaseAdmin
from factory.console.lists.columns import Column
from factory.console.lists.pages import BaseList
from factory.console.show import badge, short, when
from factory.console.site import site
from registry.admin.detail.release import linked
from registry.models import EvaluationRecord
from registry.selectors import releases


class MeasuredList(BaseList):
    """A page of evaluations, each with the release that was measured: the newest with that closure."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        every = releases().filter(closure_id__in={row.closure_id for row in rows})
        newest = every.order_by("closure_id", "-created_at", "-id").distinct("closure_id")
        named = (
            newest.select_related(None).select_related("asset").only("closure_id", "semver", "asset__name")
        )
        known = {one.closure_id: one for one in named}
        for row in rows:
            row.measured = known.get(row.closure_id)


@admin.register(EvaluationRecord, site=site)
class EvaluationAdmin(BaseAdmin[EvaluationRecord]):
    lead = "What a suite measured of a release. A record counts only for the hash that it was made for."

    view_operation = "ListReleases"
    list_display = ("what", "suite_version", "said", "scored", "release", "of", "producer", "at")
    file_columns = ("suite", "suite_version", "said", "scored", "of", "producer", "at", "release")
    heading = "Evaluations"
    nothing_yet = "Before a release is reviewed, its suite is run and what it measured is recorded here."
    list_filter = ("verdict", "suite")
    search_fields = ("suite", "producer", "release_hash")
    search_help_text = "Words of a suite or a producer, or a release's hash"
    ordering = ("-recorded_at", "-id")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BaseList]:
        return MeasuredList

    def headline(self, row: EvaluationRecord) -> str:
        return f"Evaluation: {self.what(row)}"

    what = Column("evaluation", lambda row: f"{row.suite} on {row.measured}" if row.measured else row.suite)

    said = Column("verdict", "verdict", badge)
    release = Column("release", "measured", linked)
    scored = Column(
        "scores", lambda row: ", ".join(f"{name} {score}" for name, score in sorted(row.scores.items()))
    )

    of = Column("release hash", "release_hash", short)
    at = Column("recorded", "recorded_at", when)
