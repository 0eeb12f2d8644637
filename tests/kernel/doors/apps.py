from factory.apps import BaseAppConfig, register


class DoorsConfig(BaseAppConfig):
    name = "tests.kernel.doors"
    default = True
    label = "doors"

    def ready(self) -> None:
        from tests.kernel.doors import models, permissions

        register(models, permissions)
