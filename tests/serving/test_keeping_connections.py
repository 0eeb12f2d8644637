"""Connections live longer than the patience of clients and proxies."""

import http.client
import time

import httpx
from django.conf import settings

from config.serving import stream, web

LONGEST_USUAL_IDLE = 60
"""Seconds for which nginx and the usual load balancers keep an idle connection to what they lead to."""


def test_both_servers_keep_idle_connections_for_longer_than_proxies_do() -> None:
    assert settings.FACTORY_KEEP_ALIVE_SECONDS > LONGEST_USUAL_IDLE
    assert web.adjustments(settings).channel_timeout == settings.FACTORY_KEEP_ALIVE_SECONDS
    bounded = stream.configured(None, settings)
    assert bounded.timeout_keep_alive == settings.FACTORY_KEEP_ALIVE_SECONDS


def test_a_connection_that_stood_still_for_three_seconds_is_used_again(base: str) -> None:
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=30)
    connection.request("GET", "/healthz")
    assert b"ok" in connection.getresponse().read()
    first = connection.sock
    time.sleep(3)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    assert (answer.status, connection.sock is first) == (200, True)
    connection.close()


def test_idle_connections_keep_nobody_waiting(base: str) -> None:
    """Ten times as many as there are threads."""
    kept = [http.client.HTTPConnection(base.removeprefix("http://"), timeout=30) for _ in range(40)]
    for each in kept:
        each.request("GET", "/healthz")
        each.getresponse().read()
    began = time.monotonic()
    assert httpx.get(f"{base}/healthz", timeout=30).status_code == 200
    assert time.monotonic() - began < 3
    for each in kept:
        each.close()
