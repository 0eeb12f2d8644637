"""A mail server on this machine that keeps what it takes, and answers as a test wants."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Post:
    """`answer` is what it says to a recipient, `mails` all that it took."""

    port: int = 0
    answer: str = "250 OK"
    mails: list[Message] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if self.answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.answer

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(message_from_bytes(envelope.content))
        return "250 taken"


@contextmanager
def post_office() -> Iterator[Post]:
    post = Post()
    with socket.create_server(("127.0.0.1", 0)) as free:
        post.port = free.getsockname()[1]
    controller = Controller(post, hostname="127.0.0.1", port=post.port)
    controller.start()
    try:
        yield post
    finally:
        controller.stop()
