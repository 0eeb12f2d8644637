"""The web process: API and admin."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("FACTORY_PROCESS", "web")

application = get_wsgi_application()

from factory.evidence.schema.readiness import require_schema  # noqa: E402  it needs the settings
from factory.kernel.telemetry import setup  # noqa: E402

require_schema()
setup.start("web")
