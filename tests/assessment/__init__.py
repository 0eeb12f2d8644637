"""The bundled assessment."""
