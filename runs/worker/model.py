"""The model gateway: any OpenAI-compatible endpoint. Each call leaves a receipt with its tokens."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from runs.worker.receipts import ReceiptBook

_ID = re.compile(r"[\x21-\x7e]{20,200}")
"""A provider's id that is long enough to be of one call alone; some number theirs (`chatcmpl-123`)."""


@dataclass(frozen=True)
class Completion:
    """Hold what the model said."""

    text: str
    model: str


class ModelFailed(Exception):
    """The gateway gave no usable answer."""


class ModelClient:
    """Chat completions through the gateway."""

    def __init__(
        self,
        base_url: str,
        key: str,
        model: str,
        book: ReceiptBook,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.model = model
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._key = key
        self._provider = urlsplit(base_url).hostname or "model-gateway"
        self._book = book
        self._transport = transport

    def complete(
        self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = 800, timeout: float = 120.0
    ) -> Completion:
        """One completion. The call is on record whatever comes of it; unknown usage is said to be unknown."""
        body = {"model": self.model, "messages": list(messages), "max_tokens": max_tokens, "temperature": 0.2}
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            with httpx.Client(transport=self._transport, timeout=timeout) as http:
                answer = http.post(self._url, json=body, headers=headers)
            answer.raise_for_status()
            completion: dict[str, Any] = answer.json()
            text = str(completion["choices"][0]["message"]["content"] or "")
        except httpx.ConnectError as fault:
            raise ModelFailed("the model gateway cannot be reached") from fault
        except httpx.HTTPStatusError as fault:
            raise ModelFailed(f"the model gateway answered {fault.response.status_code}") from fault
        except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as fault:
            self._note(None, {"error": type(fault).__name__})
            raise ModelFailed(f"no usable answer from the model: {type(fault).__name__}") from fault
        self._note(completion, {})
        return Completion(text, str(completion.get("model") or self.model))

    def _note(self, found: Mapping[str, Any] | None, details: Mapping[str, Any]) -> None:
        usage = (found or {}).get("usage") or {}
        known = {"inputTokens": usage.get("prompt_tokens"), "outputTokens": usage.get("completion_tokens")}
        counted = all(isinstance(value, int) and value >= 0 for value in known.values())
        given = (found or {}).get("id")
        self._book.add(
            "model",
            self._provider,
            self.model,
            quantities=known if counted else None,
            receipt_id=given if isinstance(given, str) and _ID.fullmatch(given) else None,
            details={
                **details,
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": self.model,
                "gen_ai.response.model": str((found or {}).get("model") or ""),
                "gen_ai.response.id": str(given or ""),
            },
        )


def from_environment(snapshot: Mapping[str, Any], book: ReceiptBook) -> ModelClient | None:
    """The gateway that the environment names, or None: then there is no model, and nobody pretends one."""
    base_url = os.environ.get("MODEL_GATEWAY_URL", "").strip()
    if not base_url:
        return None
    model = os.environ.get("MODEL_GATEWAY_MODEL") or str(snapshot.get("modelProfileId") or "default")
    return ModelClient(base_url, os.environ.get("MODEL_GATEWAY_KEY", ""), model, book)
