from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class DoorsConfig(BaseAppConfig):
    name = "tests.kernel.doors"
    default = True
    label = "doors"

    def ready(self) -> None:
        from tests.kernel.doors import models, permissions

        register(models, permissions)
