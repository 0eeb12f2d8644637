"""The model gateway: each call on record, unknown usage said to be unknown."""

from typing import Any

import httpx
import pytest

from runs.worker.model import ModelClient, ModelFailed, from_environment
from runs.worker.receipts import ReceiptBook

GOOD = {
    "id": "chatcmpl-0123456789abcdef",
    "model": "big-1-2026",
    "choices": [{"message": {"content": "All is well."}}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 4},
}


def client(book: ReceiptBook, answer: Any, status: int = 200) -> ModelClient:
    def respond(request: httpx.Request) -> httpx.Response:
        assert request.url == "http://gateway.test/v1/chat/completions"
        assert request.headers["Authorization"] == "Bearer key"
        return httpx.Response(status, json=answer)

    return ModelClient("http://gateway.test/v1/", "key", "big-1", book, httpx.MockTransport(respond))


def test_a_completion_leaves_a_receipt_with_its_tokens() -> None:
    book = ReceiptBook()
    assert client(book, GOOD).complete([{"role": "user", "content": "?"}]).text == "All is well."
    (receipt,) = book.pending()
    assert (receipt["kind"], receipt["provider"], receipt["name"]) == ("model", "gateway.test", "big-1")
    assert receipt["receiptId"] == "chatcmpl-0123456789abcdef"
    assert receipt["quantities"] == {"inputTokens": 12, "outputTokens": 4}
    assert receipt["details"]["gen_ai.response.model"] == "big-1-2026"


def test_an_id_that_the_gateway_gives_to_many_calls_is_nobodys_receipt() -> None:
    book = ReceiptBook()
    for _ in range(2):
        client(book, GOOD | {"id": "chatcmpl-123"}).complete([{"role": "user", "content": "?"}])
        client(book, GOOD).complete([{"role": "user", "content": "?"}])
    pending = book.pending()
    assert len({receipt["receiptId"] for receipt in pending}) == 4, "Four calls were paid."
    assert pending[0]["details"]["gen_ai.response.id"] == "chatcmpl-123"


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 2}]
)
def test_usage_that_was_not_told_is_unknown_and_not_zero(usage: Any) -> None:
    book = ReceiptBook()
    client(book, {**GOOD, "usage": usage}).complete([])
    assert book.pending()[0]["quantities"] is None


def test_an_answer_without_a_text_was_paid_for_all_the_same() -> None:
    book = ReceiptBook()
    with pytest.raises(ModelFailed):
        client(book, {"choices": []}).complete([])
    assert book.pending()[0]["quantities"] is None


def test_a_refused_call_costs_nothing() -> None:
    book = ReceiptBook()
    with pytest.raises(ModelFailed, match="429"):
        client(book, {}, status=429).complete([])
    assert book.pending() == []


def test_there_is_no_model_without_a_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_GATEWAY_URL", raising=False)
    assert from_environment({}, ReceiptBook()) is None
    monkeypatch.setenv("MODEL_GATEWAY_URL", "http://gateway.test/v1")
    found = from_environment({"modelProfileId": "default"}, ReceiptBook())
    assert found is not None
    assert found.model == "default"
