"""The product's settings, and the small app that the kernel's tests are about."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as _PRODUCT

INSTALLED_APPS = [*_PRODUCT, "tests.kernel.doors"]
