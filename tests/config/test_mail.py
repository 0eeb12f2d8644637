"""A mail server that was described wrongly stops the process; without one nobody is sent e-mail."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.mail import mail_settings

PUBLIC = "https://factory.example.org"


def test_without_a_server_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FACTORY_EMAIL_HOST", raising=False)
    found = mail_settings(PUBLIC)
    assert found["EMAIL_BACKEND"].endswith("dummy.EmailBackend")
    assert found["DEFAULT_FROM_EMAIL"] == "factory@factory.example.org"


@pytest.mark.parametrize(
    ("security", "tls", "ssl"), [("starttls", True, False), ("tls", False, True), ("none", False, False)]
)
def test_one_server_is_spoken_to_as_it_says(
    monkeypatch: pytest.MonkeyPatch, security: str, tls: bool, ssl: bool
) -> None:
    monkeypatch.setenv("FACTORY_EMAIL_HOST", "mail.example.org")
    monkeypatch.setenv("FACTORY_EMAIL_SECURITY", security)
    found = mail_settings(PUBLIC)
    assert found["EMAIL_BACKEND"].endswith("smtp.EmailBackend")
    assert (found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"], found["EMAIL_TIMEOUT"]) == (tls, ssl, 10)


@pytest.mark.requirement("CFG-07")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FACTORY_EMAIL_PORT", "0"),
        ("FACTORY_EMAIL_SECURITY", "ssl"),
        ("FACTORY_EMAIL_PASSWORD", "s3cret-one"),
        ("FACTORY_EMAIL_USER", "somebody"),
        ("FACTORY_EMAIL_FROM", "nobody"),
        ("FACTORY_EMAIL_FROM", "a@b.test\r\nBcc: all@b.test"),
    ],
)
def test_what_nobody_meant_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=name) as refused:
        mail_settings(PUBLIC)
    assert value not in str(refused.value) or name == "FACTORY_EMAIL_PORT"


@pytest.mark.requirement("CFG-07")
def test_a_password_does_not_travel_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("USER", "u"), ("PASSWORD", "p"), ("SECURITY", "none")):
        monkeypatch.setenv(f"FACTORY_EMAIL_{name}", value)
    with pytest.raises(ImproperlyConfigured, match="in the clear"):
        mail_settings(PUBLIC)
