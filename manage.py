#!/usr/bin/env python3
"""The command line of Factory Control Plane."""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036  this is the message for those who have an older one
    sys.exit("Factory Control Plane needs Python 3.11 or newer; this one is " + sys.version.split()[0] + ".")


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import OperationalError
    except ImportError:
        sys.exit("The packages are not installed in this Python: run `make venv`, then use .venv/bin/python.")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")
    except OperationalError as error:
        sys.exit(
            f"The database cannot be reached: {str(error).strip()}\n"
            "The private one runs while `make up` does. For another, set DATABASE_URL, and "
            "DATABASE_OWNER_URL or DATABASE_AUDITOR_URL for what needs them."
        )


if __name__ == "__main__":
    main()
