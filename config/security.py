"""What a browser is told, and how cookies travel. Loopback is the one place without TLS."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured

from config.environment import flag, integer, text, words
from factory.embedded.system import secret

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_KEY = 32


def secret_key(secrets: Path) -> str:
    """The key of sessions and forms: from the environment, or generated once for this installation."""
    given = text("SECRET_KEY", "")
    if given and len(given) < SHORTEST_KEY:
        raise ImproperlyConfigured(f"SECRET_KEY must have at least {SHORTEST_KEY} characters.")
    return given or secret(secrets, "secret_key")


def content_security_policy() -> dict[str, Any]:
    return {
        "DIRECTIVES": {
            "default-src": [SELF],
            # The theme's Alpine evaluates the expressions of its own templates. No inline script runs.
            "script-src": [SELF, UNSAFE_EVAL],
            "style-src": [SELF, UNSAFE_INLINE],
            "img-src": [SELF, "data:"],
            "font-src": [SELF],
            "connect-src": [SELF],
            "object-src": [NONE],
            "base-uri": [NONE],
            "form-action": [SELF],
            "frame-ancestors": [NONE],
        }
    }


def browser_settings() -> dict[str, Any]:
    """Cookies, hosts and transport, all from the one address that people use."""
    public_url = text("FACTORY_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
    parts = urlsplit(public_url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise ImproperlyConfigured("FACTORY_PUBLIC_URL must be like https://factory.example.org.")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise ImproperlyConfigured("FACTORY_PUBLIC_URL must be https everywhere but on this machine itself.")
    tls = parts.scheme == "https"
    return {
        "FACTORY_PUBLIC_URL": public_url,
        "ALLOWED_HOSTS": words("ALLOWED_HOSTS", [host, *LOOPBACK, "testserver"] if not tls else [host]),
        "CSRF_TRUSTED_ORIGINS": [public_url],
        "SESSION_COOKIE_SECURE": tls,
        "CSRF_COOKIE_SECURE": tls,
        "SECURE_SSL_REDIRECT": tls and not flag("FACTORY_TLS_ENDS_BEFORE", False),
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https") if _trusts_proxy() else None,
        "SECURE_HSTS_SECONDS": integer("FACTORY_HSTS_SECONDS", 31_536_000, least=0, most=63_072_000)
        if tls
        else 0,
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": tls,
    }


def _trusts_proxy() -> bool:
    """Only where a proxy in front sets (and never passes on) X-Forwarded-Proto."""
    return flag("FACTORY_TRUST_PROXY", False)
