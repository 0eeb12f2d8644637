"""No secret leaves the process in a log line."""

import pytest

from config.logs import HIDDEN, hide_secrets

TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "key", ["password", "SECRET_KEY", "access_token", "Authorization", "api_key", "cookie"]
)
def test_a_field_with_a_secrets_name_is_hidden(key: str) -> None:
    assert hide_secrets(None, "info", {key: "hunter2"}) == {key: HIDDEN}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("no route to postgresql://app:hunter2@db/x", "no route to postgresql://app:***@db/x"),
        ("redis://:hunter2@127.0.0.1:1/0 is away", "redis://:***@127.0.0.1:1/0 is away"),
        ("sent Bearer abc.def-ghi", "sent Bearer ***"),
        (f"got {TOKEN} from him", "got *** from him"),
        ("Internal Server Error: /admin/sign-in/MQ/c8-f0/", "Internal Server Error: /admin/sign-in/MQ/***"),
        ("Not Found: /admin//sign-in/MQ//c8-f0", "Not Found: /admin//sign-in/MQ//***"),
    ],
)
def test_a_secret_in_the_text_is_cut_out(told: str, kept: str) -> None:
    assert hide_secrets(None, "info", {"event": told}) == {"event": kept}


def test_a_fencing_token_is_no_secret() -> None:
    assert hide_secrets(None, "info", {"fencing_token": 7}) == {"fencing_token": 7}
