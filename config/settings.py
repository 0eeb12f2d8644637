"""Settings: a typed environment that fails loudly, and nothing else."""

from pathlib import Path
from typing import Any

from environs import Env

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = env.str("SECRET_KEY", "not-for-production")
DEBUG = env.bool("DEBUG", False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "testserver"])
TIME_ZONE = "UTC"
USE_TZ = True
AUTH_USER_MODEL = "factory.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
STATIC_URL = "/static/"

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "factory",
    "projects",
    "approvals",
    "registry",
    "usage",
    "runs",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

import dj_database_url  # noqa: E402

from config.edge import IDENTITY  # noqa: E402, F401

DATABASES = {
    "default": dj_database_url.parse(env.str("DATABASE_URL", "postgresql://factory_app@127.0.0.1:1/factory")),
    "owner": dj_database_url.parse(
        env.str("DATABASE_OWNER_URL", "postgresql://factory_owner@127.0.0.1:1/factory")
    ),
    "auditor": dj_database_url.parse(
        env.str("DATABASE_AUDITOR_URL", "postgresql://factory_auditor@127.0.0.1:1/factory")
    ),
}
REDIS_URL = env.str("REDIS_URL", "redis://127.0.0.1:1/0")
FACTORY_ROLE_PREFIX = env.str("FACTORY_ROLE_PREFIX", "factory")
FACTORY_STREAM_LENGTH = env.int("FACTORY_STREAM_LENGTH", 100_000)
