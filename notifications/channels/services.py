"""Addresses of chat and other services: a closed list of the library's services, each with where it leads.

An address is taken apart by the class of its own service and by no other, without options: those of the
library reach for files, switch off the check of certificates, and set time-outs. Redirects are not followed.
"""

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal
from urllib.parse import urlsplit

from django.conf import settings

from factory.kernel.time_limits import TimeIsUp
from notifications.errors import AddressRefused

LONGEST = 1024
_PRINTABLE = re.compile(r"[!-~]+")
_STATUS = re.compile(r"error=(\d{3})\b")

Leads = Literal["vendor", "microsoft", "own"]
"""Whose host it is: one that the library knows, one below Microsoft's, or one that the operator trusts."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the library: the word that its addresses begin with, and its class."""

    name: str
    module: str
    leads: Leads
    example: str


SERVICES = {
    "slack": Service("Slack", "slack.NotifySlack", "vendor", "slack://TokenA/TokenB/TokenC"),
    "discord": Service("Discord", "discord.NotifyDiscord", "vendor", "discord://WebhookID/WebhookToken"),
    "tgram": Service("Telegram", "telegram.NotifyTelegram", "vendor", "tgram://BotToken/ChatID"),
    "gchat": Service("Google Chat", "google_chat.NotifyGoogleChat", "vendor", "gchat://Workspace/Key/Token"),
    "pover": Service("Pushover", "pushover.NotifyPushover", "vendor", "pover://UserKey@Token"),
    "workflows": Service(
        "Microsoft Teams", "workflows.NotifyWorkflows", "microsoft", "workflows://Host/Workflow/Signature"
    ),
    "ntfys": Service("ntfy", "ntfy.NotifyNtfy", "own", "ntfys://Topic"),
    "ntfy": Service("ntfy", "ntfy.NotifyNtfy", "own", "ntfy://Host:Port/Topic"),
    "mmosts": Service("Mattermost", "mattermost.NotifyMattermost", "own", "mmosts://Host/Token"),
    "mmost": Service("Mattermost", "mattermost.NotifyMattermost", "own", "mmost://Host:Port/Token"),
    "gotifys": Service("Gotify", "gotify.NotifyGotify", "own", "gotifys://Host/Token"),
    "gotify": Service("Gotify", "gotify.NotifyGotify", "own", "gotify://Host:Port/Token"),
}
MICROSOFTS = (".logic.azure.com", ".api.powerplatform.com")


class NotAccepted(Exception):
    """The service did not take the message; what it says holds no part of the address."""


def checked(url: str, trusted: Collection[str]) -> str:
    """Return the word of the service that an address leads to. Raises `AddressRefused`."""
    _opened(url, trusted)
    return urlsplit(url).scheme.lower()


def send(url: str, title: str, body: str) -> None:
    """Hand a message to the service behind an address. Raises `NotAccepted` or `AddressRefused`, and lets
    the end of the job's time (`TimeIsUp`) through."""
    target = _opened(url, settings.FACTORY_NOTIFICATIONS_TRUSTED_HOSTS)
    heard = _Heard()
    target.logger = heard.logger  # the library's own would write topics, tokens and messages into our log
    try:
        accepted = target.notify(body=body, title=title)
    except TimeIsUp:
        raise
    except Exception as fault:
        raise NotAccepted(f"The message could not be sent ({type(fault).__name__}).") from None
    if not accepted:
        answered = f"answered {heard.status}" if heard.status else "could not be reached, or did not take it"
        raise NotAccepted(f"The service {answered}.")


def _opened(url: str, trusted: Collection[str]) -> Any:
    """Return the library's object for an address that may be sent to."""
    if len(url) > LONGEST or not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise AddressRefused(f"An address has at most {LONGEST} printable characters, without spaces.")
    word, _, rest = url.partition("://")
    service = SERVICES.get(word.lower())
    if service is None or not rest:
        raise AddressRefused(f"An address begins with one of {', '.join(SERVICES)}, and then ://.")
    if "?" in url or "%" in url:
        raise AddressRefused("The address may hold no options (?) and no escapes (%).")
    target = _made(service, url)
    if len(target) > 1:  # each takes its own time, and what one of them refuses would be repeated to all
        raise AddressRefused(
            f"An address leads to one place, and this one to {len(target)}: add a channel for each."
        )
    _require_known_host(service, target, trusted)
    return target


def _made(service: Service, url: str) -> Any:
    cls, asset = _class_of(service), _asset()
    try:
        parts = cls.parse_url(url)
        if not parts:
            raise ValueError("it was not understood")
        return cls(**{**parts, "asset": asset})
    except TimeIsUp:
        raise
    except Exception:  # whatever the library says about it would repeat the secret
        raise AddressRefused(f"{service.name} is not addressed so. It is like {service.example}.") from None


def _require_known_host(service: Service, target: Any, trusted: Collection[str]) -> None:
    """Refuse a host that only the address names: the product connects to none such."""
    host = str(target.host or "").lower()
    if service.leads == "vendor" or (service.name == "ntfy" and target.mode == "cloud"):
        return
    if service.leads == "microsoft":
        if host.endswith(MICROSOFTS) and target.port in (None, 443):
            return
        raise AddressRefused(f"The host has to end with {' or '.join(MICROSOFTS)}.")
    address = f"{host}:{target.port or (443 if target.secure else 80)}"
    if address not in trusted:
        raise AddressRefused(
            "The installation does not trust this host. An operator names host:port in "
            "FACTORY_NOTIFICATIONS_TRUSTED_HOSTS."
        )


@cache
def _class_of(service: Service) -> Any:
    """Loaded when it is first needed: nobody else's services are loaded at all."""
    module, _, name = service.module.partition(".")
    return getattr(import_module(f"apprise.plugins.{module}"), name)


@cache
def _asset() -> Any:
    from apprise import AppriseAsset, PersistentStoreMode

    asset = AppriseAsset(storage_mode=PersistentStoreMode.MEMORY, secure_logging=True)
    asset.http_redirects = False
    return asset


class _Heard(logging.Handler):
    """Hears what the library says about one message, and keeps the status that was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.status = ""
        self.logger = logging.Logger("notifications.unheard", logging.WARNING)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        match = _STATUS.search(record.getMessage())
        self.status = match[1] if match else self.status
