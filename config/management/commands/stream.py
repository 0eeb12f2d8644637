"""Serve the stream process: watching runs, and the workers' surface."""

from config.management.serve import Serve


class Command(Serve):
    help = "Serve GET /factory/watch and the workers' surface (an internal port: never on a public gateway)."
    kind, port = "stream", 7402
