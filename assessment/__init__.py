"""The bundled release: a repository assessment that looks, writes a report and asks before it publishes."""
