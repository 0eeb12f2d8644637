"""Sending one signed request: to a vetted address, without redirects, and within a time that ends.

All requests run on one event loop in a thread of its own, so that an endpoint that never answers costs a
socket and no thread. Nothing here knows the database.
"""

import asyncio
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import structlog
from django.conf import settings

from factory.kernel.egress import NotPublic, Target, public_address, target_of
from factory.messaging.webhooks.signing import signature

log = structlog.get_logger("factory.messaging.webhooks")

SECONDS = 15.0
"""For all of it: the look-up, the connection, the request and the answer."""
LOOKUPS = 100
"""As many as a relay's requests: whose names are slow to look up keeps nobody else's waiting."""
GONE = 410


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """Hold what is sent: the message's id and body, where to, and the secrets that sign it."""

    url: str
    message_id: str
    body: bytes
    secrets: Sequence[str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """Hold what came of it. `error` is a sentence for people, and empty only for a delivery."""

    status: int | None
    error: str = ""
    retry_after: float = 0.0

    @property
    def unreachable(self) -> bool:
        """Tell whether the endpoint as a whole is to blame, rather than what it was sent."""
        return bool(self.error) and (self.status is None or self.status >= 500 or self.status == 429)


class Sender:
    """The event loop. `send` may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")
        self._thread = threading.Thread(target=self._loop.run_forever, name="sender", daemon=True)
        self._thread.start()
        self._tls = httpx.create_ssl_context()

    def send(self, parcel: WebhookRequest) -> "Future[WebhookResponse]":
        return asyncio.run_coroutine_threadsafe(self._send(parcel), self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def _send(self, parcel: WebhookRequest) -> WebhookResponse:
        try:
            async with asyncio.timeout(SECONDS):
                target = target_of(parcel.url, settings.FACTORY_WEBHOOKS_TRUSTED_HOSTS)
                return _judged(await self._post(target, await self._address(target), parcel))
        except TimeoutError:
            return WebhookResponse(None, f"The endpoint did not answer within {SECONDS:.0f} seconds.")
        except (NotPublic, ValueError) as refused:
            return WebhookResponse(None, str(refused))
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as fault:
            return WebhookResponse(None, f"The endpoint could not be reached ({type(fault).__name__}).")
        except Exception as fault:
            # A try that is not counted would be made again for ever, and never be set aside.
            log.exception("webhook_not_sent", message_id=parcel.message_id)
            return WebhookResponse(None, f"The request could not be sent ({type(fault).__name__}).")

    async def _address(self, target: Target) -> str:
        """Looked up once; the connection goes to this address whatever the name says a moment later."""
        if target.trusted:
            return target.host
        return await self._loop.run_in_executor(self._lookups, public_address, target.host, target.port)

    async def _post(self, target: Target, address: str, parcel: WebhookRequest) -> httpx.Response:
        at = int(time.time())
        headers = {
            **parcel.headers,
            "Host": target.authority,
            "Content-Type": "application/cloudevents+json",
            "User-Agent": "factory-control-plane",
            "webhook-id": parcel.message_id,
            "webhook-timestamp": str(at),
            "webhook-signature": signature(parcel.secrets, parcel.message_id, at, parcel.body),
        }
        where = f"[{address}]" if ":" in address else address
        # A connection for each request: one that was verified for a host must not serve another's.
        transport = httpx.AsyncHTTPTransport(
            verify=self._tls, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )
        client = httpx.AsyncClient(
            transport=transport, trust_env=False, follow_redirects=False, timeout=SECONDS
        )
        async with (
            client,
            client.stream(
                "POST",
                f"{target.scheme}://{where}:{target.port}{target.path}",
                content=parcel.body,
                headers=headers,
                extensions={"sni_hostname": target.host},
            ) as response,
        ):
            return response  # its body is nobody's business, and is not read


def _judged(response: httpx.Response) -> WebhookResponse:
    if response.is_success:
        return WebhookResponse(response.status_code)
    told = f"The endpoint answered {response.status_code}."
    if response.is_redirect:
        told = f"The endpoint answered {response.status_code}: redirects are not followed."
    return WebhookResponse(response.status_code, told, _retry_after(response.headers.get("retry-after", "")))


def _retry_after(text: str) -> float:
    return float(text) if text.isdecimal() and len(text) < 8 else 0.0
