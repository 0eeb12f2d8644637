"""Celery: messages are hints that carry ids. PostgreSQL is the queue, and a lost message costs time only."""

from typing import Any

HARD_LIMIT_SECONDS = 60
SOFT_LIMIT_SECONDS = 45
VISIBILITY_SECONDS = 120
"""Longer than any task may run: a message that is still being worked is never given out again."""


def settings_for(redis_url: str) -> dict[str, Any]:
    return {
        "CELERY_BROKER_URL": redis_url,
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            "visibility_timeout": VISIBILITY_SECONDS,
            "unacked_restore_interval": 10,
            "socket_timeout": 5,
            "socket_connect_timeout": 1,
        },
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_RESULT_BACKEND": None,
        "CELERY_TASK_IGNORE_RESULT": True,
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
        "CELERY_TASK_TIME_LIMIT": HARD_LIMIT_SECONDS,
        "CELERY_TASK_SOFT_TIME_LIMIT": SOFT_LIMIT_SECONDS,
        "CELERY_TASK_PUBLISH_RETRY": True,
        "CELERY_TASK_PUBLISH_RETRY_POLICY": {
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.1,
            "interval_max": 0.1,
        },
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS": True,
        "CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT": 1,
        "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
        "CELERY_TIMEZONE": "UTC",
        "CELERY_ENABLE_UTC": True,
    }
