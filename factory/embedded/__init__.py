"""A private PostgreSQL and Valkey for a machine that has none. Knows nothing of Django."""
