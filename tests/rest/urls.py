"""Routes that exist only for the tests of the REST base."""

from typing import Any
from uuid import UUID

from django.db import DatabaseError, InternalError, OperationalError
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from config.urls import handler400, handler404, handler500
from config.urls import urlpatterns as product
from factory.api.idempotency import key_of
from factory.api.pages import page
from factory.api.serializers import (
    AmountField,
    Flag,
    Identifier,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)
from factory.api.views import BaseView
from factory.kernel.errors import FieldError, NotFound, Unprocessable
from factory.kernel.models import AuditEntry, JournalEntry
from factory.kernel.permissions import permit, register_permit

register_permit(permit("TestRead", scope="runs.read", roles={"Observer", "Requester"}))
register_permit(permit("TestWrite", scope="runs.write", roles={"Requester"}))


class Limits(StrictSerializer):
    maxCostUsd = AmountField(source="max_cost", required=False)
    maxMinutes = Whole(source="max_minutes", min_value=1, required=False)


class Thing(StrictSerializer):
    name = TextField(max_length=20)
    flag = Flag(required=False)
    id = Identifier(required=False)
    at = TimeField(required=False)
    limits = Limits(required=False)


class Things(BaseView):
    operation = {"GET": "TestRead", "POST": "TestWrite"}

    def get(self, request: Request) -> Response:
        with self.reading():
            return Response(
                page(JournalEntry.objects.all(), request, key=("occurred_at", "id"), render=_entry)
            )

    def post(self, request: Request) -> Response:
        values = Thing.parse(request.data)
        return Response({"key": key_of(request), **{k: str(v) for k, v in values.items()}}, status=202)


class Order(StrictSerializer):
    order = WordField(["oldest", "newest"], default="newest")


class Audit(BaseView):
    operation = {"GET": "TestRead"}

    def get(self, request: Request) -> Response:
        oldest = Order.parse_query(request)["order"] == "oldest"
        with self.reading():
            rows = AuditEntry.objects.all()
            return Response(
                page(rows, request, key=("occurred_at", "id"), render=_entry, oldest_first=oldest)
            )


class One(BaseView):
    operation = {"GET": "TestRead"}

    def get(self, request: Request, thing: UUID) -> Response:
        with self.reading():
            found = JournalEntry.objects.filter(id=thing).first()
        if found is None:
            raise NotFound("There is no such thing here.")
        return Response(_entry(found))


class Faulty(BaseView):
    operation = {"GET": "TestRead"}

    def get(self, request: Request, kind: str) -> Response:
        raise FAULTS[kind]


class _Cause(Exception):
    def __init__(self, sqlstate: str | None) -> None:
        self.sqlstate = sqlstate


def _operational(sqlstate: str | None, kind: type[DatabaseError] = OperationalError) -> DatabaseError:
    fault = kind("SELECT secret FROM somewhere")
    fault.__cause__ = _Cause(sqlstate)
    return fault


FAULTS: dict[str, Exception] = {
    "unprocessable": Unprocessable(
        "Not now.", errors=[FieldError("/limits/maxCostUsd", "Too much.")], extra={"state": "Closing"}
    ),
    "away": _operational(None),
    "locked": _operational("55P03"),
    "stood-still": _operational("25P03", InternalError),
    "defect": RuntimeError("password=hunter2"),
}


def _entry(row: JournalEntry | AuditEntry) -> dict[str, Any]:
    return {"id": row.id, "sequence": row.sequence, "occurredAt": row.occurred_at}


urlpatterns = [
    *product,
    path("factory/test/things", Things.as_view()),
    path("factory/test/audit", Audit.as_view()),
    path("factory/test/things/<uuid:thing>", One.as_view()),
    path("factory/test/faults/<slug:kind>", Faulty.as_view()),
]
__all__ = ["handler400", "handler404", "handler500", "urlpatterns"]
