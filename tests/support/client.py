"""Django's test client, with one chain of middleware for the whole process, as a server has."""

from copy import copy
from typing import Any

from django.test import Client as DjangoClient
from django.test.client import ClientHandler

HANDLER = ClientHandler()


class Client(DjangoClient):
    """A visitor with cookies of its own. Django's would build every middleware anew for each visitor."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if HANDLER._middleware_chain is None:
            HANDLER.load_middleware()
        enforce = self.handler.enforce_csrf_checks
        self.handler = copy(HANDLER)
        self.handler.enforce_csrf_checks = enforce
