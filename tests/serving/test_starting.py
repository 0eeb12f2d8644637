"""A server that cannot start says why in a sentence."""

import os
import socket
import subprocess
import sys

import pytest

from tests.support.web import ROOT


def said(kind: str, *options: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"config.serving.{kind}", *options], cwd=ROOT, env=os.environ | variables,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr.strip()


@pytest.mark.parametrize("kind", ["web", "stream"])
def test_a_wrong_setting_stops_a_server_with_a_sentence(kind: str) -> None:
    told = said(kind, FACTORY_REQUEST_SECONDS="0")
    assert told == "FACTORY_REQUEST_SECONDS must be a whole number from 1 to 3600. Correct it or unset it."


@pytest.mark.parametrize("kind", ["web", "stream"])
def test_a_port_in_use_stops_a_server_with_a_sentence(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = said(kind, "--port", port)
    assert told.splitlines()[-1] == f"127.0.0.1:{port} cannot be listened on: Address already in use."
