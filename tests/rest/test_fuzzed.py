"""The API as it is described, called by Schemathesis on the running server with all that a scene has."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from factory.api.idempotency import VISIBLE
from factory.kernel.permissions import table
from tests.security.scene import BODIES, Scene, allowed_to, build, tenant_wide
from tests.support.api import token_of
from tests.support.web import serving

pytestmark = pytest.mark.slow
SEED = 20_260_101
CASES = 12
"""So many of each operation: half a minute for all of them on an idle machine."""
IDEMPOTENCY = "Idempotency-Key"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDS_IT = {
    "SuspendProject",
    "KillProject",
    "RemoveMember",
    "RevokeWorker",
    "RevokeRelease",
    "DeprecateRelease",
}
"""What would keep the other calls from reaching anything: it is tried on the other tenant."""
OF_THE_TENANT = {"OnboardProject", "PublishPolicyRevision", "RevokeToken", "JoinIdentity", "EndIdentity"}


@pytest.fixture(scope="module")
def scene() -> Scene:
    return build()


@pytest.fixture(scope="module")
def api(scene: Scene) -> Iterator[Any]:
    """The description as the running server answers it."""
    with serving("web") as base:
        described = httpx.get(f"{base}/factory/schema", timeout=60).json()
        for name, schema in described["components"]["schemas"].items():
            if "properties" in schema and name != "Problem":
                schema["additionalProperties"] = False  # what is not described is not answered either
        project = ProjectConfig(base_url=base)
        config = SchemathesisConfig(projects=ProjectsConfig(default=project))
        yield schemathesis.openapi.from_dict(described, config=config).exclude(path="/factory/watch")


def is_key(value: Any) -> bool:
    return isinstance(value, str) and VISIBLE.fullmatch(value) is not None


def there(ids: dict[str, str], name: str, value: Any) -> Any:
    """Return an id that there is instead of one that was made up; what is no id stays."""
    try:
        UUID(str(value))
    except ValueError:
        return value
    return ids.get(name, value)


def test_every_call_is_answered_as_described(api: Any, scene: Scene, subtests: pytest.Subtests) -> None:
    for result in api.get_all_operations():
        operation = result.ok()
        with subtests.test(operation.label):
            fuzz(operation, scene)


def fuzz(operation: Any, scene: Scene) -> None:
    name = operation.definition.raw["operationId"].removesuffix("_2")
    place = scene.foreign if name in ENDS_IT else scene.home
    who = place.everybody if name not in table else allowed_to(place, name)
    who = tenant_wide(place) if name in OF_THE_TENANT else who
    headers = {"Authorization": f"Bearer {token_of(who)}"}

    def call(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    body = {}
    if operation.method != "get" and name in BODIES:
        body = {"body": BODIES[name](place, place.ids), "media_type": "application/json"}
    ids = {parameter.name: place.ids[parameter.name] for parameter in operation.path_parameters}
    call(operation.Case(path_parameters=ids, headers={IDEMPOTENCY: uuid4().hex}, **body))

    @seed(SEED)
    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)))
    def call_made_up(case: Any) -> None:
        made_up = case.path_parameters or {}
        case.path_parameters = {each: there(place.ids, each, value) for each, value in made_up.items()}
        if is_key((case.headers or {}).get(IDEMPOTENCY)):
            case.headers[IDEMPOTENCY] = uuid4().hex  # or the second call would be told what the first was
        call(case)

    call_made_up()
