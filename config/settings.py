"""Settings: a typed environment that fails loudly, and nothing else."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from config import celery_settings, console, logs, mail, security, servers, sign_in
from config.edge import IDENTITY  # noqa: F401
from config.environment import (
    Network,
    choice,
    cron,
    flag,
    integer,
    metrics_shared_in,
    refuse_unknown,
    text,
    words,
)
from config.rest import REST_FRAMEWORK, SPECTACULAR_SETTINGS  # noqa: F401

BASE_DIR = Path(__file__).resolve().parent.parent
HOME = Path(text("FACTORY_HOME", str(BASE_DIR / "var"))).resolve()
SECRETS_DIR = HOME / "secrets"

# What kind of process this is: it decides pools and time-outs. A shell command is a "command".
PROCESS = choice("FACTORY_PROCESS", "command", ("web", "job", "beat", "relay", "stream", "command"))

SECRET_KEY = security.secret_key(SECRETS_DIR)
DEBUG = flag("DEBUG", False)
TIME_ZONE = "UTC"
USE_TZ = True
LANGUAGE_CODE = "en-gb"
AUTH_USER_MODEL = "factory.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

INSTALLED_APPS = [
    "config",
    "factory.console",  # before the theme: its templates win
    "factory",
    "unfold",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "axes",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "projects",
    "approvals",
    "registry",
    "usage",
    "notifications",
    "runs",
]
MIDDLEWARE = [
    "factory.api.middleware.EdgeMiddleware",
    "factory.api.system.Probes",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "factory.console.scope.ConsoleScope",
    "factory.console.refusals.OnlyByAButton",
    "factory.console.refusals.ConsoleRefusals",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
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

# --- servers -------------------------------------------------------------------------------------
WEB_THREADS = integer("FACTORY_WEB_THREADS", 8, least=1, most=128)
# A request arrives whole within so long. An idle connection is kept for longer than clients and proxies do.
FACTORY_REQUEST_SECONDS = integer("FACTORY_REQUEST_SECONDS", 30, least=1, most=3600)
FACTORY_KEEP_ALIVE_SECONDS = integer("FACTORY_KEEP_ALIVE_SECONDS", 75, least=1, most=3600)
_urls = servers.urls(SECRETS_DIR, PROCESS)
DATABASES = servers.databases(_urls, process=PROCESS, threads=WEB_THREADS)
REDIS_URL = _urls["REDIS_URL"]
FACTORY_ROLE_PREFIX = text("FACTORY_ROLE_PREFIX", "factory")

# --- run control ---------------------------------------------------------------------------------
# Those that `manage.py setting` may override without a restart, with bounds (factory/kernel/reloading.py).
FACTORY_RELOADABLE = {
    "FACTORY_LEASES_DURATION_SECONDS": (1, 3600),
    "FACTORY_LEASES_RENEWAL_GRACE_SECONDS": (0, 600),
    "FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS": (1, 20),
    "FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS": (1, 720),
}


def _reloadable(name: str, default: int) -> int:
    least, most = FACTORY_RELOADABLE[name]
    return integer(name, default, least=least, most=most)


FACTORY_LEASES_DURATION_SECONDS = _reloadable("FACTORY_LEASES_DURATION_SECONDS", 120)
FACTORY_LEASES_RENEWAL_GRACE_SECONDS = _reloadable("FACTORY_LEASES_RENEWAL_GRACE_SECONDS", 30)
FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS = _reloadable("FACTORY_RETRIES_DEFAULT_MAX_ATTEMPTS", 3)
FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = _reloadable("FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS", 72)
FACTORY_JOURNAL_RETENTION_DAYS = integer("FACTORY_JOURNAL_RETENTION_DAYS", 365, least=1, most=36500)
FACTORY_OUTBOX_RETENTION_DAYS = integer("FACTORY_OUTBOX_RETENTION_DAYS", 30, least=2, most=36500)
FACTORY_IDEMPOTENCY_RETENTION_DAYS = integer("FACTORY_IDEMPOTENCY_RETENTION_DAYS", 30, least=2, most=36500)
FACTORY_AUDIT_RETENTION_DAYS = integer(
    "FACTORY_AUDIT_RETENTION_DAYS", FACTORY_JOURNAL_RETENTION_DAYS, least=1, most=36500
)
# Heads of all hash chains, signed, once a day: keep the folder, or what the command does with each file,
# where whoever may change the database may change nothing.
FACTORY_ANCHORS_DIR = text("FACTORY_ANCHORS_DIR", str(HOME / "anchors"))
FACTORY_ANCHOR_KEY_FILE = text("FACTORY_ANCHOR_KEY_FILE", str(SECRETS_DIR / "anchor_key.pem"))
FACTORY_ANCHOR_COMMAND = words("FACTORY_ANCHOR_COMMAND", [])
# Where a process that answers no requests shows what it measures; 0 is nowhere.
FACTORY_METRICS_PORT = integer("FACTORY_METRICS_PORT", 0, least=0, most=65535)
FACTORY_METRICS_ADDRESS = text("FACTORY_METRICS_ADDRESS", "127.0.0.1")
# A folder in which web and job processes of one machine count together, for any of them to show.
FACTORY_METRICS_DIR = text("FACTORY_METRICS_DIR", "")
FACTORY_METRICS_SHARED = bool(FACTORY_METRICS_DIR) and PROCESS in ("web", "job")
if FACTORY_METRICS_SHARED:
    metrics_shared_in(FACTORY_METRICS_DIR)
# When the control plane looks after its own evidence, as cron lines in UTC.
FACTORY_VERIFY_AT = cron("FACTORY_VERIFY_AT", "17 2 * * *")
FACTORY_ANCHOR_AT = cron("FACTORY_ANCHOR_AT", "47 1 * * *")
FACTORY_PURGE_AT = cron("FACTORY_PURGE_AT", "7 3 * * *")
FACTORY_STREAM_LENGTH = integer("FACTORY_STREAM_LENGTH", 100_000, least=1000, most=100_000_000)

# --- webhooks ------------------------------------------------------------------------------------
# host:port of endpoints of one's own that may be plain http or inside; none unless somebody names one.
FACTORY_WEBHOOKS_TRUSTED_HOSTS = words("FACTORY_WEBHOOKS_TRUSTED_HOSTS", [])

# --- registry ------------------------------------------------------------------------------------
# Folders below which a local Git repository may be fetched; none unless somebody names one.
FACTORY_GIT_LOCAL_ROOTS = words("FACTORY_GIT_LOCAL_ROOTS", [])

# --- browsers ------------------------------------------------------------------------------------
_browser = security.browser_settings()
globals().update(_browser)
FACTORY_PUBLIC_URL: str = _browser["FACTORY_PUBLIC_URL"]
CONTENT_SECURITY_POLICY = security.content_security_policy()
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = integer("FACTORY_SESSION_HOURS", 8, least=1, most=168) * 3600
CSRF_COOKIE_SAMESITE = "Lax"
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True  # straight from the packages: nothing to collect, nothing to forget
WHITENOISE_AUTOREFRESH = False
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# For how long a link is good by which somebody sets their password.
PASSWORD_RESET_TIMEOUT = integer("FACTORY_SIGN_IN_LINK_HOURS", 24, least=1, most=168) * 3600

CSRF_FAILURE_VIEW = "factory.console.refusals.stale_form"
_sign_in = sign_in.sign_in_settings()
globals().update(_sign_in)
AXES_FAILURE_LIMIT: int = _sign_in["AXES_FAILURE_LIMIT"]
AXES_COOLOFF_TIME: timedelta = _sign_in["AXES_COOLOFF_TIME"]
FACTORY_TRUSTED_PROXIES: list[Network] = _sign_in["FACTORY_TRUSTED_PROXIES"]
FACTORY_REFUSED_TOKENS_PER_MINUTE: int = _sign_in["FACTORY_REFUSED_TOKENS_PER_MINUTE"]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"  # who opened the form itself, and no page before it

# --- telling people ------------------------------------------------------------------------------
_mail = mail.mail_settings(FACTORY_PUBLIC_URL)
globals().update(_mail)
FACTORY_EMAIL_ON: bool = bool(_mail["EMAIL_HOST"])
# host:port of chat services of one's own that people may name; others are the library's own hosts.
FACTORY_NOTIFICATIONS_TRUSTED_HOSTS = words("FACTORY_NOTIFICATIONS_TRUSTED_HOSTS", [])

# --- console ---------------------------------------------------------------------------------------
UNFOLD = console.console(console.NAVIGATION)

# --- background and logs -------------------------------------------------------------------------
globals().update(celery_settings.settings_for(REDIS_URL))
LOG_LEVEL = choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = logs.logging_settings(LOG_LEVEL, PROCESS)
logs.configure()

refuse_unknown()
