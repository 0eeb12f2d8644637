"""Sending one message outside any transaction: claim it, hand it over, note what came of it."""

import smtplib
from uuid import UUID

import structlog
from django.conf import settings
from django.core import mail
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from factory.kernel.context import Context
from factory.kernel.time_limits import TimeIsUp
from notifications.channels.services import NotAccepted
from notifications.channels.services import send as send_to_service
from notifications.commands import ClaimedMessage, claim, settle
from notifications.errors import AddressRefused
from notifications.states import Medium

log = structlog.get_logger("notifications")


def send_one(ctx: Context, notification_id: UUID) -> bool:
    """Send a notification if it is due and nobody else is at it; says whether it arrived."""
    parcel = claim(ctx, notification_id=notification_id)
    if parcel is None:
        return False
    error, final = _handed_over(parcel)
    settle(ctx, notification_id=parcel.id, attempt=parcel.attempt, error=error, final=final)
    if error:
        log.warning("notification_failed", id=str(parcel.id), medium=parcel.medium, attempt=parcel.attempt)
    return not error


def _handed_over(parcel: ClaimedMessage) -> tuple[str, bool]:
    """Hand a message over; return what went wrong, without addresses, and whether that is final."""
    try:
        if parcel.medium == Medium.EMAIL:
            _send_mail(parcel)
        else:
            send_to_service(parcel.address, parcel.message.title, parcel.message.body)
    except smtplib.SMTPRecipientsRefused as refused:
        codes = [code for code, _ in refused.recipients.values()]
        return f"The mail server refused the recipient ({codes[0]}).", all(code >= 500 for code in codes)
    except (mail.BadHeaderError, ValidationError):
        return "The person's e-mail address is none.", True
    except smtplib.SMTPResponseException as answered:
        return f"The mail server answered {answered.smtp_code} ({type(answered).__name__}).", False
    except NotAccepted as refused:
        return str(refused), False
    except AddressRefused as refused:
        return refused.detail, True
    except TimeIsUp:  # nobody knows whether it arrived: the claim lapses, and the try counts
        raise
    except Exception as fault:
        # A try that is not counted would be made again for ever, and never be set aside.
        if not isinstance(fault, smtplib.SMTPException | OSError):
            log.error("notification_not_sent", id=str(parcel.id), fault=type(fault).__name__)
        return f"The message could not be handed over ({type(fault).__name__}).", False
    return "", False


def _send_mail(parcel: ClaimedMessage) -> None:
    """Plain text, under an id that a repeat shares: a mail program that has it shows it once."""
    validate_email(parcel.address)  # a list of them is none: a message goes to one person
    host = settings.DEFAULT_FROM_EMAIL.rsplit("@", 1)[-1].strip("> ")
    email = mail.EmailMessage(
        parcel.message.title,
        parcel.message.body,
        to=[parcel.address],
        headers={"Message-ID": f"<{parcel.id}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    email.send()
