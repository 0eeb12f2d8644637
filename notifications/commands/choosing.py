"""What a person does about how they are told. It is theirs alone: nobody acts for another here."""

from collections.abc import Collection
from uuid import UUID

from django.conf import settings

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, NotFound, VersionMismatch
from factory.kernel.locking import lock
from factory.kernel.recording import audit, save
from factory.messaging.webhooks.signing import sealed
from notifications.channels.services import checked
from notifications.commands.notify import notify as make_notifications
from notifications.errors import AddressRefused, ChannelNameTaken, TooManyChannels
from notifications.models import Channel, Notice, Preference
from notifications.selectors import ChannelView, channels_of
from notifications.states import CHOOSABLE, Kind, Medium

MOST = 10
LONGEST_NAME = 80


@command("ChangeOwnNotifications")
def change_preference(ctx: Context, *, kinds: Collection[str], version: int) -> int:
    """Choose what the caller wants by e-mail in this tenant; answers the new version.

    Guards: the caller is a person; the version that was looked at, 0 for the first choice. Emits: nothing.
    Errors: `InvalidInput`, `VersionMismatch`.
    """
    chosen, row = _known(kinds), _person(ctx)
    if version != row.version:
        raise VersionMismatch(
            "The kinds of e-mail were changed by another request. Read them again, then change them."
        )
    row.kinds, row.version, row.updated_at = chosen, row.version + 1, clock.now()
    save(row)
    return int(row.version)


@command("AddChannel")
def add_channel(ctx: Context, *, name: str, address: str, kinds: Collection[str]) -> str:
    """Add a channel for the caller. The address is sealed, and never shown to anybody again.

    Guards: the caller is a person; a service of the list, with a host that is the service's own or that the
    operator trusts. Emits: nothing. Errors: `AddressRefused`, `InvalidInput`, `TooManyChannels`,
    `ChannelNameTaken`.
    """
    label, chosen = _label(name), _known(kinds)
    try:
        service = checked(address, settings.FACTORY_NOTIFICATIONS_TRUSTED_HOSTS)
    except AddressRefused as refused:
        errors = [FieldError("/address", refused.detail)]
        raise AddressRefused(refused.detail, errors=errors) from None
    _person(ctx)
    own = list(channels_of(ctx.actor.subject))
    if len(own) >= MOST:
        raise TooManyChannels(f"You have {MOST} channels already. Remove one first.")
    _require_free(own, label)
    at = clock.now()
    row = Channel(
        tenant_id=ctx.tenant_id,
        subject=ctx.actor.subject,
        name=label,
        service=service,
        address=sealed(address),
        kinds=chosen,
        created_at=at,
        updated_at=at,
    )
    save(row)
    audit(ctx, "AddChannel", subject=f"channel:{row.id}", detail={"service": service})
    return str(row.id)


@command("ChangeChannel")
def change_channel(ctx: Context, *, channel_id: UUID, name: str, kinds: Collection[str], version: int) -> str:
    """Give a channel another name or other kinds. Another address is another channel.

    Guards: the channel is the caller's; the version that was looked at. Emits: nothing. Errors: `NotFound`,
    `InvalidInput`, `ChannelNameTaken`, `VersionMismatch`.
    """
    _person(ctx)
    row = _own(ctx, channel_id)
    if row.version != version:
        raise VersionMismatch(f"The channel is at version {row.version}. Read it again.")
    label, chosen = _label(name), _known(kinds)
    _require_free([channel for channel in channels_of(ctx.actor.subject) if channel.id != row.id], label)
    row.name, row.kinds = label, chosen
    row.version, row.updated_at = row.version + 1, clock.now()
    save(row)
    return str(row.id)


@command("RemoveChannel")
def remove_channel(ctx: Context, *, channel_id: UUID) -> str:
    """Remove a channel: nothing more is sent there, and its secret is forgotten.

    Guards: the channel is the caller's. Emits: nothing. Errors: `NotFound`.
    """
    row = _own(ctx, channel_id)
    row.removed_at = row.updated_at = clock.now()
    row.address = ""
    save(row)
    audit(ctx, "RemoveChannel", subject=f"channel:{row.id}", detail={"service": row.service})
    return str(row.id)


@command("TestChannel")
def send_test(ctx: Context, *, channel_id: UUID) -> str:
    """Send a message by a channel that says nothing but that it arrived.

    Guards: the channel is the caller's. Emits: nothing. Errors: `NotFound`.
    """
    row = _own(ctx, channel_id)
    notice = Notice(tenant_id=ctx.tenant_id, kind=Kind.TEST, project_id=ctx.project_id, made_at=clock.now())
    save(notice)
    make_notifications(ctx, notice, [ChannelView(row.subject, Medium.SERVICE, row.id)])
    return str(row.id)


def _person(ctx: Context) -> Preference:
    """Lock the caller's row: what they do here happens one after the other."""
    rows, subject = Preference.objects, ctx.actor.subject
    new = Preference(
        tenant_id=ctx.tenant_id, subject=subject, kinds=list(CHOOSABLE), version=0, updated_at=clock.now()
    )
    rows.bulk_create([new], ignore_conflicts=True)
    row: Preference = rows.select_for_update(no_key=True).get(subject=subject)
    return row


def _own(ctx: Context, channel_id: UUID) -> Channel:
    missing = NotFound("You have no such channel here.")
    row = lock(Channel, channel_id, missing=missing)
    if row.subject != ctx.actor.subject or row.removed_at is not None:
        raise missing
    return row


def _label(name: str) -> str:
    label = " ".join(name.split())
    if not label or len(label) > LONGEST_NAME or not label.isprintable():
        errors = [FieldError("/name", f"1 to {LONGEST_NAME} printable characters; this has {len(label):,}.")]
        raise InvalidInput("Give the channel a name.", errors=errors)
    return label


def _require_free(others: Collection[Channel], label: str) -> None:
    if any(channel.name == label for channel in others):
        raise ChannelNameTaken(f"You have a channel named {label} already. Give this one another name.")


def _known(kinds: Collection[str]) -> list[str]:
    strange = set(kinds) - set(CHOOSABLE)
    if strange:
        errors = [FieldError("/kinds", f"Any of {', '.join(CHOOSABLE)}.")]
        raise InvalidInput("There is no such kind of message.", errors=errors)
    return [str(kind) for kind in CHOOSABLE if kind in kinds]
