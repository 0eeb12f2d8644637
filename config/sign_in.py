"""When signing in, or a token, has failed too often; and whose word about a caller's address is taken."""

from datetime import timedelta
from typing import Any

from config.environment import integer, networks


def sign_in_settings() -> dict[str, Any]:
    """Return what django-axes is told, and what counts tokens that are refused."""
    return {
        "AUTHENTICATION_BACKENDS": [
            "axes.backends.AxesStandaloneBackend",
            "django.contrib.auth.backends.ModelBackend",
        ],
        # Proxies whose X-Forwarded-For is believed; without one the peer itself is the caller.
        "FACTORY_TRUSTED_PROXIES": networks("FACTORY_TRUSTED_PROXIES"),
        "FACTORY_REFUSED_TOKENS_PER_MINUTE": integer(
            "FACTORY_REFUSED_TOKENS_PER_MINUTE", 60, least=1, most=1_000_000
        ),
        "AXES_FAILURE_LIMIT": integer("FACTORY_SIGN_IN_TRIES", 5, least=2, most=100),
        "AXES_COOLOFF_TIME": timedelta(
            minutes=integer("FACTORY_SIGN_IN_LOCK_MINUTES", 15, least=1, most=1440)
        ),
        # Both together: nobody is shut out by what somebody else does from elsewhere, and who stands behind
        # one proxy with them is not either.
        "AXES_LOCKOUT_PARAMETERS": [["username", "ip_address"]],
        "AXES_RESET_ON_SUCCESS": True,
        "AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT": False,
        "AXES_USERNAME_FORM_FIELD": "username",
        "AXES_USERNAME_CALLABLE": "factory.identity.sign_in.account_of",
        "AXES_CLIENT_IP_CALLABLE": "factory.identity.clients.address_of",
        "AXES_CLIENT_STR_CALLABLE": "factory.identity.sign_in.in_words",
        "AXES_LOCKOUT_CALLABLE": "factory.identity.sign_in.locked_answer",
        "AXES_SENSITIVE_PARAMETERS": ["username", "csrfmiddlewaretoken", "next"],
        "AXES_ENABLE_ADMIN": False,
        "AXES_DISABLE_ACCESS_LOG": True,
        "AXES_VERBOSE": False,
    }
