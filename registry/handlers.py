"""What the registry does about events, and what it registers with the apps below."""

from factory.kernel.context import Context
from factory.messaging.relay.handlers import Handler, Received
from factory.messaging.relay.jobs import hint
from registry.events import AssetReleaseSubmitted
from registry.tasks import RESOLVE


def hint_resolver(ctx: Context, event: Received) -> None:
    """Hint to a job worker to fetch the commit, which is too slow for a relay. Twice is harmless."""
    hint(RESOLVE, tenant_id=ctx.tenant_id, release_id=str(event.payload["releaseId"]))


HANDLERS = (Handler("registry.hint_resolver", AssetReleaseSubmitted.topic, hint_resolver),)
