"""Where every path of the product begins."""

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import autodiscover_modules
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from factory.api import system
from factory.console import cards, events, evidence, refusals, settings, webhooks  # noqa: F401  register their pages
from factory.console.site import site

APPS = ("projects", "approvals", "registry", "usage", "notifications", "runs")

autodiscover_modules("admin", register_to=site)


def _has_rest(app: str) -> bool:
    return find_spec(f"{app}.rest") is not None and find_spec(f"{app}.rest.urls") is not None


urlpatterns: list[URLPattern | URLResolver] = [
    path(".well-known/jwks.json", system.public_keys),
    path("factory/schema", SpectacularJSONAPIView.as_view(), name="schema"),
    path("factory/docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("factory/problems/<slug:slug>", system.problem_page),
    path("admin/", site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path(
        "factory/events/<slug:context>.<slug:aggregate>.<slug:version>.<slug:event>.json", system.event_schema
    ),
    path("factory/", include("factory.api.urls")),
    *(path("factory/", include(f"{app}.rest.urls")) for app in APPS if _has_rest(app)),
]

handler400 = refusals.malformed
handler403 = refusals.forbidden
handler404 = refusals.not_found
handler500 = system.broken
