"""Secrets and signatures after Standard Webhooks (v1, HMAC-SHA256).

A secret is made here, shown to its owner once, and kept sealed under the installation's SECRET_KEY: a
copy of the database alone signs nothing.
"""

import base64
import hashlib
import hmac
import secrets as randomness
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PREFIX = "whsec_"
SECRET_BYTES = 32


class SecretUnreadable(ValueError):
    """It was sealed under another SECRET_KEY: its owner has to make a new one."""


def new_secret() -> str:
    """A secret as its owner gets it."""
    return PREFIX + base64.b64encode(randomness.token_bytes(SECRET_BYTES)).decode()


def sealed(secret: str) -> str:
    """The secret as it is stored."""
    return _seal().encrypt(secret.encode()).decode()


def opened(stored: str) -> str:
    """The secret behind what is stored. Raises `SecretUnreadable`."""
    try:
        return _seal().decrypt(stored.encode()).decode()
    except InvalidToken as fault:
        raise SecretUnreadable("The secret was sealed under another SECRET_KEY: make a new one.") from fault


def _seal() -> MultiFernet:
    keys = [str(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"factory.messaging.webhooks.secrets")
    return base64.urlsafe_b64encode(derive.derive(key.encode()))


def signature(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: one for each secret that is good now."""
    content = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return " ".join(f"v1,{_mac(secret, content)}" for secret in secrets)


def _mac(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
