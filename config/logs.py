"""Logs: one JSON object a line on stderr, and never a secret in one."""

import logging
import re
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from factory.kernel.text import without_links

HIDDEN = "(hidden)"
SECRET_NAMES = re.compile(
    r"password|secret|token(?!_id)|authorization|cookie|api_?key|credential", re.IGNORECASE
)
NOT_SECRET = frozenset({"fencing_token"})
SECRET_TEXTS = (
    (re.compile(r"(\w+://[^:/@\s]*:)[^@/\s]+@"), r"\1***@"),  # a password in a URL
    (re.compile(r"(?i)(bearer\s+)[\w.~+/=-]+"), r"\1***"),
    (re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), "***"),  # a JSON Web Token
)


def hide_secrets(logger: object, method: str, event: EventDict) -> EventDict:
    """The last processor before rendering: whatever looks like a secret does not leave the process."""
    for key, value in event.items():
        if SECRET_NAMES.search(key) and key not in NOT_SECRET:
            event[key] = HIDDEN
        elif isinstance(value, str):
            event[key] = cleaned(value)
    return event


def cleaned(words: str) -> str:
    words = without_links(words)
    for pattern, replacement in SECRET_TEXTS:
        words = pattern.sub(replacement, words)
    return words


SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    structlog.stdlib.PositionalArgumentsFormatter(),
]


def configure() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def logging_settings(level: str, process: str) -> dict[str, Any]:
    """Django's LOGGING: libraries that use the standard library's logging come out in the same form."""

    def name_process(logger: logging.Logger, method: str, event: EventDict) -> EventDict:
        event["process"] = process
        return event

    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    name_process,
                    hide_secrets,
                    structlog.processors.JSONRenderer(),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Refused requests are answers, not incidents; the edge logs what deserves it.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "httpx": {"level": "WARNING"},
            "waitress.queue": {"level": "ERROR"},  # that requests wait for a thread is no incident
            "axes": {"level": "WARNING"},  # failed tries, and locks
            # Both write addresses of services with the secrets in them.
            "urllib3": {"level": "WARNING"},
            "apprise": {"level": "CRITICAL"},
        },
    }
