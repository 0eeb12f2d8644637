"""No URL and no name of the corpus makes the product knock at a door inside."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from factory.kernel import egress
from factory.kernel.context import Context
from factory.kernel.errors import InvalidInput
from factory.messaging.webhooks import sending
from factory.messaging.webhooks.commands import create_webhook
from factory.messaging.webhooks.sending import Sender, WebhookRequest, WebhookResponse
from factory.messaging.webhooks.signing import new_secret
from tests.webhooks.receiver import Receiver


@dataclass
class Canary:
    """A door inside. Nobody may knock."""

    port: int
    knocks: int = 0


@pytest.fixture
def canary() -> Iterator[Canary]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        found, over = Canary(server.getsockname()[1]), threading.Event()

        def watch() -> None:
            while not over.is_set():
                try:
                    server.accept()[0].close()
                    found.knocks += 1
                except OSError:
                    continue

        watching = threading.Thread(target=watch)
        watching.start()
        yield found
        over.set()
        watching.join()


HOSTS = [
    "127.0.0.1", "127.1", "0.0.0.0", "0", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "localhost",
    "localhost.", "LOCALHOST", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "169.254.169.254", "[fd00:ec2::254]", "192.0.0.192",
    "100.100.100.200", "100.64.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "198.18.0.1", "224.0.0.1",
    "metadata", "metadata.google.internal:80@127.0.0.1", "user:pass@127.0.0.1", "hooks.example.com@127.0.0.1",
    "127.0.0.1\\@hooks.example.com", "127.0.0.1%23.example.com", "\u2460\u2461\u2466.0.0.1", "127。0。0。1",
]  # fmt: skip
ADDRESSES = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "100.127.255.254", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
    "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
]  # fmt: skip


def send(url: str) -> WebhookResponse:
    sender = Sender()
    try:
        return sender.send(WebhookRequest(url, "an-id", b"{}", [new_secret()], {})).result(30)
    finally:
        sender.close()


def test_no_form_of_an_address_inside_is_a_webhook(
    ctx: Context, canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SECONDS", 3.0)
    urls = [f"https://{host}:{canary.port}/" for host in HOSTS] + [
        f"http://hooks.example.com:{canary.port}/", f"gopher://127.0.0.1:{canary.port}/x", "file:///etc/passwd",
        f"//127.0.0.1:{canary.port}/", f"https:127.0.0.1:{canary.port}", "https://",
        "https://hooks.example.com:0x50/", "https://hooks.example.com:0/",
        f"https://hooks.example.com/\r\nHost: 127.0.0.1:{canary.port}", "https://hooks.example.com/#x",
        "javascript:1",
    ]  # fmt: skip
    values = {"topics": (), "consumer": "", "description": "", "secret": new_secret()}
    for url in urls:
        with pytest.raises(InvalidInput) as refused:
            create_webhook(ctx, url=url, **values)
        assert [fault.pointer for fault in refused.value.errors] == ["/url"], url
        assert send(url).error, f"{url}: what got into the table past the command is refused once more"
    assert canary.knocks == 0


def leading_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name leads to these addresses; the list tells who was asked for."""
    asked: list[str] = []

    def look_up(host: str, port: int, *_: object, **__: object) -> list[object]:
        asked.append(host)
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, 1, 6, "", (one, port)) for one in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def test_no_name_leads_inside(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    for answers in [(one,) for one in ADDRESSES] + [("93.184.216.34", one) for one in ADDRESSES]:
        leading_to(monkeypatch, *answers)
        told = send(f"https://hooks.example.com:{canary.port}/")
        assert told.error == "The host hooks.example.com leads to an address that is not public."
        assert told.status is None
    assert canary.knocks == 0


def test_a_name_is_looked_up_once_and_its_answer_is_where_the_request_goes(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: the name leads outside when it is vetted, and inside a moment later."""
    monkeypatch.setattr(sending, "SECONDS", 2.0)
    reached: list[str] = []

    def look_up(host: str, port: int, *_: object, **__: object) -> list[object]:
        reached.append(host)
        address = "192.88.99.7" if len(reached) == 1 else "127.0.0.1"
        return [(socket.AF_INET, 1, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(egress, "is_public", lambda address: address != "127.0.0.1")
    assert send(f"https://hooks.example.com:{canary.port}/").error
    assert reached == ["hooks.example.com"]
    assert canary.knocks == 0


def test_the_canary_would_sing(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, with the vetting taken out."""
    monkeypatch.setattr(sending, "SECONDS", 3.0)
    leading_to(monkeypatch, "127.0.0.1")
    monkeypatch.setattr(egress, "is_public", lambda address: True)
    send(f"https://hooks.example.com:{canary.port}/")
    assert canary.knocks == 1


def test_what_nobody_thought_of_is_a_failed_try_and_no_endless_one(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> str:
        raise RuntimeError("the key is no key")

    monkeypatch.setattr(sending, "signature", broken)
    told = send(receiver.url)
    assert told.error == "The request could not be sent (RuntimeError)."
    assert told.status is None


def test_a_redirect_leads_nowhere(canary: Canary, receiver: Receiver) -> None:
    for status in (301, 302, 303, 307, 308):
        receiver.reply = lambda _, status=status: (status, {"Location": f"http://127.0.0.1:{canary.port}/"})
        assert send(receiver.url).error == f"The endpoint answered {status}: redirects are not followed."
    assert canary.knocks == 0


def test_a_proxy_of_the_environment_is_not_used(
    canary: Canary, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    assert send(receiver.url) == WebhookResponse(204)
    assert canary.knocks == 0
