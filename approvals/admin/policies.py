"""Pages of the policy's revisions."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals.models import PolicyRevision
from factory.admin.base import HouseAdmin
from factory.admin.show import short, when
from factory.admin.site import site


@admin.register(PolicyRevision, site=site)
class PolicyAdmin(HouseAdmin[PolicyRevision]):
    """What is allowed, what needs a person, and who that is. A revision never changes."""

    view_operation = "ListPolicyRevisions"
    list_display = ("revision", "note", "published_by", "at", "hash")
    search_fields = ("note", "published_by")
    ordering = ("-number",)
    fields = ("revision", "note", "published_by", "at", "document_hash", "warned", "text")
    readonly_fields = fields

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj)

    @admin.display(description="published")
    def at(self, row: PolicyRevision) -> SafeString:
        return when(row.published_at)

    @admin.display(description="hash")
    def hash(self, row: PolicyRevision) -> SafeString:
        return short(row.document_hash)

    @admin.display(description="warnings")
    def warned(self, row: PolicyRevision) -> str:
        return "; ".join(row.warnings) or "none"

    @admin.display(description="document")
    def text(self, row: PolicyRevision) -> SafeString:
        return format_html('<pre class="fc-mono">{}</pre>', json.dumps(row.document, indent=2))
