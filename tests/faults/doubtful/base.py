"""The backend of that name, as Django finds it by ENGINE."""

import random
import threading

from django.db import OperationalError
from django.db.backends.postgresql import base


class Doubt:
    """How large a share of commits is told as a broken connection, and how many were."""

    def __init__(self) -> None:
        self.share = 0.0
        self.told = 0
        self._chance = random.Random()
        self._lock = threading.Lock()

    def begin(self, share: float, seed: int) -> None:
        self.share, self.told, self._chance = share, 0, random.Random(seed)

    def falls(self) -> bool:
        with self._lock:
            fell = self._chance.random() < self.share
            self.told += fell
            return fell


doubt = Doubt()


class DatabaseWrapper(base.DatabaseWrapper):
    def _commit(self) -> None:
        super()._commit()
        if self.connection is not None and doubt.falls():
            self.connection.close()
            raise OperationalError("server closed the connection unexpectedly")
