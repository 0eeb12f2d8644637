"""The drawings of a run's page."""
