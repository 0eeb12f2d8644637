from factory.apps import HouseConfig


class DoorsConfig(HouseConfig):
    name = "tests.kernel.doors"
    default = True
    label = "doors"
