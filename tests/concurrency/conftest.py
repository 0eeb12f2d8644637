from tests.runs.conftest import house, lived_in

__all__ = ["house", "lived_in"]
