"""Paths of the registry, below /factory."""

from django.urls import path

from registry.rest import views

RELEASE = "releases/<uuid:release_id>"

urlpatterns = [
    path("releases", views.ReleaseList.as_view()),
    path(RELEASE, views.ReleaseDetail.as_view()),
    path(f"{RELEASE}/manifest", views.ReleaseManifest.as_view()),
    path(f"{RELEASE}/files/<str:sha256>", views.ReleaseFile.as_view()),
    path(f"{RELEASE}/evaluations", views.ReleaseEvaluations.as_view()),
    path(f"{RELEASE}/review", views.ReleaseReview.as_view()),
    path(f"{RELEASE}/deprecate", views.ReleaseDeprecate.as_view()),
    path(f"{RELEASE}/revoke", views.ReleaseRevoke.as_view()),
    path("assets/<slug:asset>/aliases/<slug:alias>", views.AliasDetail.as_view()),
]
