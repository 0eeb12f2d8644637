"""Signing in is locked after too many wrong tries: by the account and the address together.

django-axes counts, in the database, so that it holds over all processes. What it is told, and what it says,
is here. An account that does not exist is counted, locked and told of like one that does.
"""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.forms import AuthenticationForm

from factory.identity.accounts import why_no_sign_in
from factory.identity.clients import address_of
from factory.kernel.addresses import addresses_in
from factory.kernel.models import User

MOST_WRITTEN = 1000
NO_ADDRESS = "(no e-mail address)"
LOCKED = (
    "Too many tries. Signing in with this e-mail address from where you are is locked until {} UTC, "
    "whatever the password. Whoever runs the platform can unlock it sooner."
)


def account_of(request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> str:
    """Return the account that was tried; what is no address may be a password, and is not kept."""
    written = str((credentials or request.POST).get("username") or "")[:MOST_WRITTEN].strip().lower()
    name = next(iter(addresses_in(written)), written)  # every spelling that the account is found by
    return name[:255] if "@" in name else NO_ADDRESS


def in_words(account: str, address: str | None, agent: str, path: Any, request: HttpRequest) -> str:
    """Return who tried, for the log."""
    return f"{account} from {address or 'nowhere'}"


def locked_until(account: str, address: str | None) -> datetime | None:
    """Return when the tries are few enough again, or nothing where they are."""
    tries = AccessAttempt.objects.filter(username=account, ip_address=address)
    counted, limit = 0, settings.AXES_FAILURE_LIMIT
    lasts: timedelta = settings.AXES_COOLOFF_TIME
    for at, many in tries.order_by("-attempt_time").values_list("attempt_time", "failures_since_start"):
        counted += many
        if counted >= limit:
            until: datetime = at + lasts
            return until if until > timezone.now() else None
    return None


class SignInForm(AuthenticationForm):  # type: ignore[misc]  # the theme has no types
    """The console's form; it says in plain words that it is locked, and until when."""

    request: HttpRequest
    error_messages: ClassVar[dict[str, str]] = {
        **AuthenticationForm.error_messages,
        "invalid_login": "No account has this e-mail address and password. Capital letters count.",
    }

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        """Refuse by the one rule of who can sign in, which the pages about members ask too."""
        told = why_no_sign_in(user) if isinstance(user, User) else "This is no account of the console."
        if told:
            raise ValidationError(told, code="inactive")

    def get_invalid_login_error(self) -> ValidationError:
        if not getattr(self.request, "axes_locked_out", False):
            usual: ValidationError = super().get_invalid_login_error()
            return usual
        until = locked_until(account_of(self.request), address_of(self.request))
        return ValidationError(LOCKED.format(_shown(until or timezone.now())), code="locked")


def _shown(until: datetime) -> str:
    """Return the minute from which on it is open, with its day."""
    return f"{until + timedelta(minutes=1):%d %b %H:%M}"


def locked_answer(request: HttpRequest, response: HttpResponse, credentials: Any = None) -> HttpResponse:
    """Return the page that was made, as 429 with the seconds to wait."""
    until = locked_until(account_of(request), address_of(request))
    left = 1 if until is None else math.ceil((until - timezone.now()).total_seconds())
    response.status_code = 429
    response["Retry-After"] = str(max(1, left))
    return response
