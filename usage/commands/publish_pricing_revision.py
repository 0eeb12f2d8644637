from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Max

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.hashing import digest
from factory.kernel.recording import record
from usage.errors import PriceInThePast
from usage.models import PricingRevision
from usage.operations.serial import one_at_a_time
from usage.permissions import require_over_money
from usage.pricing.quotes import checked, default_document


@command("PublishPricingRevision")
def publish_pricing_revision(
    ctx: Context, *, document: Mapping[str, Any], valid_from: datetime | None = None
) -> str:
    """Publish prices under the tenant's next number, in force from `valid_from`, by default from now.

    Guards: the grant finance, or the role WorkspaceAdmin or PlatformAdmin, in the whole tenant (403); a valid
    document (400 with pointers); not in the past (`PriceInThePast`, 422), for what was already priced stays
    as it is. Answers with its id.
    """
    require_over_money(ctx, whole_tenant=True)
    return _publish(ctx, checked(document, "/document"), valid_from)


@command("EstablishPricing")
def establish_pricing(ctx: Context) -> str | None:
    """Give a tenant that has no prices those that come with the product; otherwise a no-op.

    The tools of the bundled assessment then have a price from the first run on.
    """
    one_at_a_time("pricing", ["number"])
    if PricingRevision.objects.exists():
        return None
    return _publish(ctx, default_document(), None)


def _publish(ctx: Context, document: dict[str, Any], valid_from: datetime | None) -> str:
    one_at_a_time("pricing", ["number"])
    at = clock.now()
    if valid_from is not None and valid_from < at:
        raise PriceInThePast("Prices can begin now or later, not in the past.")
    last = PricingRevision.objects.aggregate(last=Max("number"))["last"] or 0
    revision = PricingRevision(
        number=last + 1,
        document=document,
        document_hash=digest(document),
        valid_from=valid_from or at,
        published_by=ctx.actor.subject,
        published_at=at,
    )
    detail = {"number": revision.number, "documentHash": revision.document_hash}
    record(ctx, revision, "PricingRevisionPublished", detail=detail)
    return str(revision.id)
