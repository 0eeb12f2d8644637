"""The configuration that every app of this product begins with."""

from django.apps import AppConfig


class BaseAppConfig(AppConfig):
    """An app of this product: its `ready()` names all that it registers.

    (Each app says `default = True`, because it also imports this class, and Django would not know which of
    the two to take.)
    """

    default_auto_field = "django.db.models.BigAutoField"
    default = False

    def __init_subclass__(cls) -> None:
        cls.default = True
