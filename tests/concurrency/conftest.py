from tests.runs.conftest import house

__all__ = ["house"]
