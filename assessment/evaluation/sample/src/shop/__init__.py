"""The corner shop."""
