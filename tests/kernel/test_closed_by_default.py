"""What somebody forgot is closed; what a caller brings along changes no wall."""

from typing import Any, ClassVar
from uuid import UUID

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from factory.api.views import BaseView
from factory.kernel.context import Context

from .damage import admin_url
from .doors.acts import build_door

APP = f"{settings.FACTORY_ROLE_PREFIX}_app"


class Forgetful(BaseView):
    """Names an operation for one of its methods."""

    authentication_classes: ClassVar[list] = []
    permission_classes: ClassVar[list] = []
    operation: ClassVar = {"POST": "BuildDoor"}

    def get(self, request: Request) -> Response:
        return Response({"secret": 1})

    def post(self, request: Request) -> Response:
        return Response({})


def answer(ctx: Context, method: str) -> int:
    class Known(Forgetful):
        def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
            made: Request = super().initialize_request(request, *args, **kwargs)
            made.context = ctx  # type: ignore[attr-defined]
            return made

    request = getattr(APIRequestFactory(), method)("/factory/x", {}, format="json")
    return int(Known.as_view()(request).status_code)


@pytest.mark.parametrize(
    ("method", "status"), [("get", 403), ("head", 403), ("post", 200), ("put", 405), ("options", 405)]
)
def test_a_handler_that_names_no_operation_is_closed(ctx: Context, method: str, status: int) -> None:
    assert answer(ctx, method) == status


def test_a_temporary_table_of_the_journals_name_deceives_no_trigger(ctx: Context) -> None:
    door_id = UUID(build_door(ctx)["doorId"])
    with psycopg.connect(admin_url()) as admin:
        admin.execute(f'GRANT TEMPORARY ON DATABASE "{connection.settings_dict["NAME"]}" TO {APP}')
        admin.execute(f"SET LOCAL ROLE {APP}")
        admin.execute("SELECT set_config('factory.tenant', %s, true)", [ctx.tenant_id])
        admin.execute(
            "CREATE TEMPORARY TABLE factory_journalentry AS SELECT %s::uuid AS entity_id, "
            "pg_current_xact_id()::text::bigint AS transaction_id, 'Open' AS from_state, 'Shut' AS to_state",
            [door_id],
        )
        admin.execute("UPDATE doors_door SET state = 'Shut', shut_at = now() WHERE id = %s", [door_id])
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="without a journal entry"):
            admin.execute("SET CONSTRAINTS ALL IMMEDIATE")
        admin.rollback()


@pytest.mark.parametrize("privilege", ["INSERT", "UPDATE", "DELETE"])
def test_the_application_cannot_say_which_migrations_ran(privilege: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('django_migrations', %s)", [privilege])
        assert cursor.fetchone() == (False,)
