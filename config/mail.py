"""How the installation sends e-mail: through one server, or not at all."""

from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.environment import choice, integer, text

TIMEOUT_SECONDS = 10


def mail_settings(public_url: str) -> dict[str, Any]:
    """Django's settings of mail, from the variables that begin with FACTORY_EMAIL_.

    Without a server nothing is sent by e-mail, and nobody is offered it.
    """
    host = text("FACTORY_EMAIL_HOST", "").strip()
    port = integer("FACTORY_EMAIL_PORT", 587, least=1, most=65535)
    user, password = text("FACTORY_EMAIL_USER", ""), text("FACTORY_EMAIL_PASSWORD", "")
    secured = choice("FACTORY_EMAIL_SECURITY", "starttls", ("starttls", "tls", "none"))
    sender = text("FACTORY_EMAIL_FROM", f"factory@{urlsplit(public_url).hostname}")
    if bool(user) != bool(password):
        raise ImproperlyConfigured("FACTORY_EMAIL_USER and FACTORY_EMAIL_PASSWORD go together.")
    if password and secured == "none":
        raise ImproperlyConfigured("FACTORY_EMAIL_PASSWORD would travel in the clear: use starttls or tls.")
    if "@" not in parseaddr(sender)[1] or not sender.isprintable():
        raise ImproperlyConfigured("FACTORY_EMAIL_FROM must be like Factory <factory@example.org>.")
    backend = "smtp" if host else "dummy"
    return {
        "EMAIL_BACKEND": f"django.core.mail.backends.{backend}.EmailBackend",
        "EMAIL_HOST": host,
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": user,
        "EMAIL_HOST_PASSWORD": password,
        "EMAIL_USE_TLS": secured == "starttls",
        "EMAIL_USE_SSL": secured == "tls",
        "EMAIL_TIMEOUT": TIMEOUT_SECONDS,
        "DEFAULT_FROM_EMAIL": sender,
    }
