"""The product's settings, and the small app that the kernel's tests are about."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as _PRODUCT

INSTALLED_APPS = [*_PRODUCT, "tests.kernel.doors"]

# People of the tests sign in by the hundred; how slowly a password is hashed is Django's own test.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
