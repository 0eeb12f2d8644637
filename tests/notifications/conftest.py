from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from tests.support.approvals import Asking, Stage, asking, staged
from tests.webhooks.receiver import Receiver, receiving


@pytest.fixture(autouse=True)
def stage() -> Iterator[Stage]:
    """The subjects of the requests of the test."""
    with staged() as it:
        yield it


@pytest.fixture(autouse=True)
def post_office(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installation sends e-mail; Django's own outbox for tests takes it (`mailoutbox`)."""
    monkeypatch.setattr(settings, "FACTORY_EMAIL_ON", True)
    monkeypatch.setattr(settings, "FACTORY_PUBLIC_URL", "https://factory.example.org")


@pytest.fixture
def asker(tenant_id: str) -> Asking:
    """A step that asks, in a world with the platform's policy."""
    return asking(tenant_id)


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A chat service of one's own that the operator trusts; it answers 200."""
    with receiving() as found:
        found.reply = lambda _: 200
        monkeypatch.setattr(settings, "FACTORY_NOTIFICATIONS_TRUSTED_HOSTS", [found.place])
        yield found


@pytest.fixture
def mails(mailoutbox: list[Any]) -> list[Any]:
    return mailoutbox
