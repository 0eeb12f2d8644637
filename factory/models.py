"""The tables of the packages below, named where Django looks for them."""

from factory.kernel.models import *  # noqa: F403
