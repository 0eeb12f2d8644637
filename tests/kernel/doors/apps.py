from factory.apps import BaseAppConfig


class DoorsConfig(BaseAppConfig):
    name = "tests.kernel.doors"
    default = True
    label = "doors"
