"""The one exception handler of the REST surface."""

from typing import Any

from rest_framework.response import Response

from factory.api.correlation import correlation_of
from factory.api.problems import CONTENT_TYPE, problem_of


def handle(fault: Exception, context: dict[str, Any]) -> Response:
    """A fault that left a view, as problem+json."""
    request = context["request"]
    problem = problem_of(fault)
    body = problem.body(instance=request.path, trace_id=str(correlation_of(request)))
    return Response(body, problem.status, headers=dict(problem.headers), content_type=CONTENT_TYPE)
