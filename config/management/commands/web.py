"""Serve the web process: API and console."""

from config.management.serve import Serve


class Command(Serve):
    help = "Serve the API and the console."
    kind, port = "web", 8000
