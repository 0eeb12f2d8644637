"""Signing in is locked after too many wrong tries, and tokens that are refused are counted."""

import re
from datetime import timedelta
from io import StringIO
from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import httpx
import pytest
from axes.models import AccessAttempt
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from config import environment
from factory.identity.clients import client_address
from factory.identity.sign_in import NO_ADDRESS, locked_until
from factory.kernel import hints
from factory.kernel.models import User
from tests.support.api import Api, token_of, worker_token
from tests.support.client import Client
from tests.support.running import House
from tests.support.web import web
from tests.support.world import world

RIGHT, WRONG = "right horse battery staple", "wrong horse battery staple"
TRIES = 5


def person() -> User:
    return User.objects.create_user(f"p-{uuid4().hex[:12]}@example.test", RIGHT, is_staff=True)


def sign_in(email: str, password: str, place: str = "192.0.2.1", **more: str) -> Any:
    form = {"username": email, "password": password}
    return Client().post(reverse("admin:login"), form, REMOTE_ADDR=place, **more)


def entered(answer: Any) -> bool:
    return bool(answer.status_code == 302)


def told(answer: Any) -> str:
    """Return the page, without what differs from one to the next."""
    page = re.sub(r'value="[^"]*"', "", answer.content.decode())
    return re.sub(r"\d\d \w\w\w \d\d:\d\d UTC", "(then)", page)


def lock(email: str, place: str = "192.0.2.1") -> Any:
    return [sign_in(email, WRONG, place) for _ in range(TRIES)][-1]


def test_the_right_password_enters_no_more_after_sixty_wrong_ones() -> None:
    who = person()
    answers = [sign_in(who.email, WRONG) for _ in range(60)]
    assert [answer.status_code for answer in answers] == [200] * (TRIES - 1) + [429] * (61 - TRIES)
    last = sign_in(who.email, RIGHT)
    assert last.status_code == 429
    assert 0 < int(last["Retry-After"]) <= 15 * 60
    until = locked_until(who.email, "192.0.2.1")
    assert until is not None
    said = f"from where you are is locked until {until + timedelta(minutes=1):%d %b %H:%M} UTC"
    assert said in last.content.decode()
    assert "unlock it sooner" in last.content.decode()


def test_a_few_wrong_tries_lock_nobody_and_are_forgotten_when_the_right_one_enters() -> None:
    who = person()
    for _ in range(3):
        for _ in range(TRIES - 1):
            assert sign_in(who.email, WRONG).status_code == 200
        assert entered(sign_in(who.email, RIGHT))


def test_a_lock_is_of_one_account_in_one_place_and_shuts_nobody_else_out() -> None:
    who, neighbour = person(), person()
    lock(who.email)
    assert entered(sign_in(neighbour.email, RIGHT)), "behind the same proxy"
    assert entered(sign_in(who.email, RIGHT, "192.0.2.2")), "from home"
    assert sign_in(who.email, RIGHT).status_code == 429


def wide(email: str) -> str:
    """Write its letters in their full width, which mean the same."""
    return "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in email)


def ideographic(email: str) -> str:
    """Write the dots of its domain as another script does."""
    return email.replace(".", "\N{IDEOGRAPHIC FULL STOP}")


@pytest.mark.parametrize("spelling", [str.upper, str.title, lambda email: f" {email} ", wide, ideographic])
def test_another_spelling_is_the_same_account(spelling: Any) -> None:
    who = person()
    lock(spelling(who.email))
    assert sign_in(who.email, RIGHT).status_code == 429


def test_what_a_caller_says_of_its_address_or_browser_gives_no_more_tries(settings: Any) -> None:
    who = person()
    for n in range(TRIES):
        sign_in(who.email, WRONG, HTTP_X_FORWARDED_FOR=f"203.0.113.{n}", HTTP_USER_AGENT=f"browser {n}")
    assert sign_in(who.email, RIGHT, HTTP_X_FORWARDED_FOR="203.0.113.99").status_code == 429
    settings.FACTORY_TRUSTED_PROXIES = [ip_network("192.0.2.1/32")]
    other = person()
    for n in range(TRIES):
        sign_in(other.email, WRONG, HTTP_X_FORWARDED_FOR=f"203.0.113.{n}, 198.51.100.7")
    assert sign_in(other.email, RIGHT, HTTP_X_FORWARDED_FOR="198.51.100.7").status_code == 429
    assert entered(sign_in(other.email, RIGHT, HTTP_X_FORWARDED_FOR="198.51.100.8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("192.0.2.7", "", "192.0.2.7"),
        ("192.0.2.7", "203.0.113.1", "192.0.2.7"),
        ("10.1.2.3", "203.0.113.1", "203.0.113.1"),
        ("10.1.2.3", "203.0.113.66, 203.0.113.1", "203.0.113.1"),
        ("10.1.2.3", "203.0.113.1, 10.9.9.9", "203.0.113.1"),
        ("10.1.2.3", "203.0.113.1, nonsense", "10.1.2.3"),
        ("10.1.2.3", "203.0.113.1:4711", "203.0.113.1"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "", "2001:db8:1:2::"),
        ("::ffff:192.0.2.7", "", "192.0.2.7"),
        ("10.1.2.3", "[2001:db8::9]:4711", "2001:db8::"),
        ("", "203.0.113.1", ""),
    ],
)
def test_only_trusted_proxies_are_asked_for_whom_they_speak(
    settings: Any, peer: str, forwarded: str, found: str
) -> None:
    settings.FACTORY_TRUSTED_PROXIES = [ip_network("10.0.0.0/8")]
    assert client_address(peer, forwarded) == found


@pytest.mark.parametrize("value", ["everybody", "10.0.0.1/8", "10.0.0.0/99"])
def test_a_proxy_that_is_no_network_stops_the_process(monkeypatch: Any, value: str) -> None:
    monkeypatch.setenv("FACTORY_TRUSTED_PROXIES", value)
    with pytest.raises(ImproperlyConfigured, match="FACTORY_TRUSTED_PROXIES must be a list of networks"):
        environment.networks("FACTORY_TRUSTED_PROXIES")


def test_nothing_tells_an_account_from_none() -> None:
    who, nobody = person().email, f"nobody-{uuid4().hex[:12]}@example.test"
    for password in (*[WRONG] * (TRIES + 2), RIGHT):
        answers = [sign_in(email, password) for email in (who, nobody)]
        assert answers[0].status_code == answers[1].status_code
        assert told(answers[0]) == told(answers[1])


def test_failed_tries_are_kept_without_passwords(caplog: Any) -> None:
    who = person()
    lock(who.email, "192.0.2.44")
    sign_in(WRONG, WRONG, "192.0.2.44")  # typed into the wrong field
    kept = list(AccessAttempt.objects.filter(ip_address="192.0.2.44").values())
    assert {(row["username"], row["failures_since_start"]) for row in kept} == {
        (who.email, 5),
        (NO_ADDRESS, 1),
    }
    assert WRONG not in f"{kept} {caplog.text}"
    assert f"{who.email} from 192.0.2.44" in caplog.text


def test_a_lock_ends_by_itself_or_by_whoever_runs_the_platform() -> None:
    who, other = person(), person()
    for one in (who, other):
        lock(one.email)
    said = StringIO()
    call_command("axes_list_attempts", stdout=said)
    assert who.email in said.getvalue()
    call_command("axes_reset_username", who.email, stdout=StringIO())
    assert entered(sign_in(who.email, RIGHT))
    assert sign_in(other.email, RIGHT).status_code == 429
    ago = timezone.now() - timedelta(minutes=15, seconds=1)
    AccessAttempt.objects.filter(username=other.email).update(attempt_time=ago)
    assert locked_until(other.email, "192.0.2.1") is None
    assert entered(sign_in(other.email, RIGHT))


def test_tries_during_a_lock_do_not_make_it_longer() -> None:
    who = person()
    lock(who.email)
    before = locked_until(who.email, "192.0.2.1")
    for _ in range(3):
        sign_in(who.email, WRONG)
    assert locked_until(who.email, "192.0.2.1") == before


@pytest.mark.slow
def test_locks_and_counts_hold_over_several_processes_and_behind_a_proxy(tenant_id: str) -> None:
    who, home, place = person(), world(tenant_id), f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1"
    with web(FACTORY_REFUSED_TOKENS_PER_MINUTE="20", FACTORY_TRUSTED_PROXIES="127.0.0.0/8") as base:
        seen = [_over_http(base, place, who.email, WRONG) for _ in range(12)]
        assert seen == [200] * (TRIES - 1) + [429] * (13 - TRIES)
        assert _over_http(base, place, who.email, RIGHT) == 429
        assert _over_http(base, "203.0.113.9", who.email, RIGHT) == 302
        bad = [_bearer(base, place, "made.up.token") for _ in range(30)]
        assert [answer.status_code for answer in bad] == [401] * 20 + [429] * 10
        assert 0 < int(bad[-1].headers["Retry-After"]) <= 60
        good = _bearer(base, place, token_of(home.operator))
        assert good.status_code == 200, "whoever else is behind the address"


def _over_http(base: str, place: str, email: str, password: str) -> int:
    with httpx.Client(base_url=base, timeout=60, headers={"X-Forwarded-For": place}) as browser:
        page = browser.get("/admin/login/")
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert found
        form = {"username": email, "password": password, "csrfmiddlewaretoken": found[1]}
        return browser.post("/admin/login/", data=form, headers={"Referer": base}).status_code


def _bearer(base: str, place: str, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": place}
    return httpx.get(f"{base}/factory/runs", headers=headers, timeout=60)


@pytest.fixture
def few(settings: Any) -> str:
    """Return an address of its own, from which three tokens a minute may be refused."""
    settings.FACTORY_REFUSED_TOKENS_PER_MINUTE = 3
    return f"198.51.100.{uuid4().int % 250}"


def test_too_many_refused_tokens_of_one_address_are_told_to_wait(tenant_id: str, few: str) -> None:
    home = world(tenant_id)
    hints.broker().delete(f"factory:refused:{few}")

    def call(token: str, place: str = few) -> Any:
        api = Api(token)
        api.client.defaults["REMOTE_ADDR"] = place
        return api.get("/factory/runs")

    good = token_of(home.operator)
    for status in (401, 401, 401, 429, 429):
        answer = call("made.up.token")
        assert answer.status_code == status
        assert call(good).status_code == 200
    assert 0 < int(answer["Retry-After"]) <= 60
    assert answer.json()["type"] == "/factory/problems/too-many-requests"
    assert call("").status_code == 401, "who shows no token at all tries none"
    assert call("made.up.token", "203.0.113.250").status_code == 401


def test_while_the_broker_is_away_a_refused_token_is_refused_and_a_good_one_passes(
    tenant_id: str, few: str, monkeypatch: Any, settings: Any
) -> None:
    home = world(tenant_id)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(hints, "_silent_until", 0.0)
    hints.broker.cache_clear()
    try:
        assert [Api("made.up.token").get("/factory/runs").status_code for _ in range(6)] == [401] * 6
        assert Api(token_of(home.operator)).get("/factory/runs").status_code == 200
    finally:
        hints.broker.cache_clear()
        hints._silent_until = 0.0


def test_workers_are_counted_by_the_same_rule(tenant_id: str, few: str) -> None:
    from starlette.requests import Request

    from runs.watch.http import caller

    house = House(tenant_id)
    hints.broker().delete(f"factory:refused:{few}")

    def call(token: str) -> str:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (few, 1)}
        try:
            return caller(Request(scope | {"query_string": b"", "state": {}}))[1].actor.kind
        except Exception as fault:
            return type(fault).__name__

    good = worker_token(pool=house.pool)
    assert [call("x.y.z") for _ in range(5)] == ["TokenRefused"] * 3 + ["Throttled"] * 2
    assert call(good) == "worker"
