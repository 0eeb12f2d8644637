"""What nobody should send, to everything that takes a body: refused with a problem, nothing written."""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from uuid import uuid4

import pytest

import config.urls  # noqa: F401 - it is what registers the pages
from factory.console.site import site
from tests.security.scene import BODIES, Place, Route, Scene, allowed_to, routes
from tests.support.api import Api, problem
from tests.support.evidence import counts

WITHOUT_A_BODY = {"EnableWebhook", "RotateWebhookSecret", "PingWebhook", "TestChannel"}
"""They read nothing of what is sent: the path says all."""
WRITES = [
    pytest.param(route, method, id=f"{method} {route.path}")
    for route in routes()
    for method in route.operations
    if method in ("POST", "PUT", "PATCH") and route.operations[method] not in WITHOUT_A_BODY
]
DEEP = b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
RAW: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "NaN": b'{"reason": NaN, "amount": NaN}',
    "infinity": b'{"reason": -Infinity}',
    "1e400": b'{"reason": 1e400, "limits": {"maxCostUsd": 1e400}}',
    "a huge integer": b'{"version": ' + b"9" * 5000 + b"}",
    "just too large an integer": b'{"version": 9007199254740993123}',
    "too deep": DEEP,
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "NUL": b'{"reason": "a\\u0000b"}',
    "a raw NUL": b'{"reason": "a\x00b"}',
    "a lone surrogate": b'{"reason": "\\ud800"}',
    "a lone surrogate as a name": b'{"\\udfff": 1}',
    "not UTF-8": b'{"reason": "\xff\xfe"}',
    "twice the same member": b'{"reason": "a", "reason": "b"}',
    "an array": b"[]",
    "a word": b'"reason"',
    "null": b"null",
    "a number": b"1",
    "an unknown member": b'{"__proto__": {"admin": true}, "_connector": "OR"}',
    "a right-to-left override as a name": '{"\u202etxt": 1}'.encode(),
}


def send(place: Place, route: Route, method: str, body: Any, **headers: str) -> Any:
    url = route.url(place.ids)
    headers = {"Idempotency_Key": str(uuid4())} | headers
    caller = allowed_to(place, route.operations[method])
    return Api.as_(caller).call(method, url, body, **headers)


@pytest.mark.parametrize(("route", "method"), WRITES)
def test_refuses_what_no_honest_caller_sends(scene: Scene, route: Route, method: str) -> None:
    home = scene.home
    before = counts(home.system())[:2]
    for name, raw in RAW.items():
        answer = send(home, route, method, raw)
        assert 400 <= answer.status_code < 500, (name, answer.status_code, answer.content[:300])
        problem(answer)
    assert counts(home.system())[:2] == before


@pytest.mark.slow
@pytest.mark.parametrize(("route", "method"), WRITES)
def test_points_at_each_member_of_the_wrong_kind(scene: Scene, route: Route, method: str) -> None:
    home, operation = scene.home, route.operations[method]
    good = BODIES[operation](home, home.ids)
    before = counts(home.system())[:2]
    for member in good:
        for wrong in ([], {"x": [None]}, 1.5, True, "\u202e" * 3000, -1, 2**60, None, ""):
            if type(wrong) is type(good[member]) and member != "version":
                continue
            if (operation, member, wrong) == ("EvaluatePolicy", "environment", None):
                continue  # there, null is a word: no environment
            answer = send(home, route, method, good | {member: wrong})
            if answer.status_code < 300:
                pytest.fail(f"{operation} takes {wrong!r:.40} for {member}")
            told = problem(answer)
            assert told["status"] in (400, 403, 404, 409, 422), (member, wrong, told)
            if told["status"] == 400 and "canonical JSON" not in told["detail"]:
                assert told["errors"], (member, wrong, told)
                assert all(fault["pointer"].startswith(f"/{member}") for fault in told["errors"]), told
    answer = send(home, route, method, good | {"surprise": 1})
    assert answer.status_code == 400
    assert "/surprise" in [fault["pointer"] for fault in problem(answer)["errors"]]
    assert counts(home.system())[:2] == before


@pytest.mark.parametrize(("route", "method"), WRITES)
def test_refuses_a_body_that_is_too_large_or_of_another_kind(scene: Scene, route: Route, method: str) -> None:
    home = scene.home
    good = BODIES[route.operations[method]](home, home.ids)
    large = json.dumps(good).encode() + b" " * (1024 * 1024 + 1)
    assert send(home, route, method, large).status_code == 413
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = send(home, route, method, json.dumps(good).encode(), Content_Type=kind)
        assert answer.status_code == 415, kind
        problem(answer)


SOME = ("%00", "%ed%a0%80", "'")
ODD = ("%00", "%ff", "%ed%a0%80", "%E2%80%AE", "..%2f..", "'", '"', "a" * 3000, "-1", "1e400", "%F0%9F%98%80")


def test_odd_words_in_paths_and_queries_are_no_fault_of_ours(scene: Scene) -> None:
    api = Api.as_(scene.home.everybody)
    for route in routes():
        if "GET" not in route.operations:
            continue
        for odd in SOME:
            for name in route.params:
                url = route.path.replace(f"<{name}>", odd)
                for other in route.params:
                    url = url.replace(f"<{other}>", scene.home.ids[other])
                assert api.get(url).status_code in (400, 404), url
        if not route.params or "at" in route.path:
            for query, odd in product(("limit", "cursor", "state", "asset", "runId", "at", "from"), SOME):
                status = api.get(f"{route.url(scene.home.ids)}?{query}={odd}").status_code
                assert status < 500, (route.path, query, odd)


def test_an_odd_limit_or_cursor_is_refused(scene: Scene) -> None:
    api = Api.as_(scene.home.everybody)
    for odd in ODD:
        for query in ("limit", "cursor"):
            answer = api.get(f"/factory/runs?{query}={odd}")
            assert answer.status_code == 400, (query, odd)
            problem(answer)


def test_odd_headers_are_no_fault_of_ours(scene: Scene) -> None:
    api = Api.as_(scene.home.everybody)
    for odd in ("\x7f", "é", "a" * 9000, "x y", "", "🙂"):
        for header in ("Idempotency_Key", "If_None_Match", "traceparent", "X_Request_ID", "Accept"):
            body = {"slug": "x"} if header == "Idempotency_Key" else None
            method, path = ("POST", "/factory/projects") if body else ("GET", "/factory/runs")
            assert api.call(method, path, body, **{header: odd}).status_code < 500, (header, odd)


def console_acts() -> Iterator[Any]:
    """Every route of the console that is not one of the pages that Django makes for a model."""
    usual = ("_changelist", "_add", "_history", "_delete", "_change", "_doc", "index", "login", "logout")
    pending = [("", urls) for urls in site.get_urls()]
    while pending:
        before, at = pending.pop()
        route = before + str(at.pattern)
        if hasattr(at, "url_patterns"):
            pending += [(route, inner) for inner in at.url_patterns]
        elif at.name and not at.name.endswith(usual) and "(?P" not in route:
            yield pytest.param(route, id=at.name)


FIELDS = (
    *("version", "seen", "until", "value", "open_attempts", "key", "run", "worker", "webhook", "kind"),
    *("release_id", "decision", "document", "place", "in_flight", "resolution", "evidence", "act", "topics"),
    *("proposal_hash", "role", "delegate", "url", "after", "before", "class", "name", "format"),
)
NO_VALUES = ("", "-1", "9" * 5000, "2026-13-45T99:99", "\u202e")


@pytest.mark.parametrize("route", [*console_acts()])
def test_what_a_form_of_the_console_never_sends_is_refused_in_words(scene: Scene, route: str) -> None:
    from tests.security.test_tenant_matrix import browser

    client, ids = browser(scene.home.everybody), scene.home.ids
    url = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(ids.get(found[1], uuid4())), f"/admin/{route}")
    for odd in (*NO_VALUES, f"{ids['approval_id']} x y"):
        answer = client.post(url, dict.fromkeys(FIELDS, odd) | {"reason": "odd"})
        assert answer.status_code < 500, (url, odd)
    assert client.get(url, dict.fromkeys(FIELDS, NO_VALUES[2])).status_code < 500, url


@pytest.mark.slow
def test_odd_words_in_the_console_are_no_fault_of_ours(scene: Scene) -> None:
    from tests.security.test_tenant_matrix import browser

    client = browser(scene.home.everybody)
    decide = f"/admin/approvals/approvalrequest/{scene.home.ids['approval_id']}/decide/"
    for field in ("reason", "proposal_hash", "decision", "version"):
        form = {"decision": "approve", "version": "1", "proposal_hash": "x", "reason": "x"} | {field: "\x00"}
        assert client.post(decide, form).status_code == 400, field
    for model in site._registry:
        name = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for odd in ("%00", "%ed%a0%80", "'"):
            for query in (f"q={odd}&p={odd}", f"state={odd}", f"tenant_id={odd}"):
                assert client.get(f"{name}?{query}").status_code < 500, (name, query, odd)
            assert client.get(f"{name}{odd}/change/").status_code < 500, (name, odd)
