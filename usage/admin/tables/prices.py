"""The page of prices: what a unit of each call costs, by revision."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.lists.columns import Column
from factory.console.show import measured, seen, short, when
from factory.console.site import site
from usage.admin.tables.base import MoneyAdmin
from usage.models import PricingRevision
from usage.pricing.quotes import ANY_NAME


@dataclass(frozen=True, slots=True)
class Price:
    """Hold what one unit of a call costs, and whether a statement may still change a known cost."""

    provider: str
    name: str
    amount: str
    unit: str
    is_final: bool


@admin.register(PricingRevision, site=site)
class PricingAdmin(MoneyAdmin[PricingRevision]):
    lead = (
        "What units cost, from when. A revision never changes; a call is priced by the one in force then. "
        "New prices are published over the API, by the grant finance or an administrator's role in the "
        "whole tenant."
    )

    view_operation = "ListPricingRevisions"
    heading = "Prices"
    nothing_yet = "The first prices come with the tenant; later ones are published over the API."
    search_fields = ("published_by", "document_hash")
    search_help_text = "Who published it, or a part of the hash"
    list_display = ("label", "valid", "published_by", "hash")
    file_columns = ("number", "valid", "published_by", "hash")
    ordering = ("-number",)
    fields = ("label", "valid", "published_by", "document_hash", "prices", "text")
    readonly_fields = fields

    def headline(self, row: PricingRevision) -> str:
        return f"Prices {row.label}"

    label = Column("revision", "label")
    valid = Column("valid from", "valid_from", when)
    hash = Column("document hash", "document_hash", short)

    @admin.display(description="prices")
    def prices(self, row: PricingRevision) -> SafeString:
        """A line for each unit of each call; the document below says the same to programs."""
        return render_to_string("usage/prices.html", {"prices": list(prices_of(row))})

    @admin.display(description="document")
    def text(self, row: PricingRevision) -> SafeString:
        return format_html('<pre class="fc-mono">{}</pre>', json.dumps(row.document, indent=2))


def prices_of(row: PricingRevision) -> Iterator[Price]:
    """Every price of a revision, in the order of its document."""
    for provider, told in row.document["providers"].items():
        names, final = told.get("prices", {}), bool(told.get("confirming", False))
        for name, units in names.items():
            others = "any" if len(names) == 1 else "any other"
            called = others if name == ANY_NAME else seen(name)
            for unit, price in units.items():
                yield Price(seen(provider), called, price, measured(1, unit), final)
