"""The routes of runs."""

from django.urls import path

from runs.rest import templates, views
from runs.rest.uncertain import UncertainAttempts

urlpatterns = [
    path("runs", views.RunList.as_view(), name="runs"),
    path("runs/<uuid:run_id>", views.RunDetail.as_view(), name="run"),
    path("runs/<uuid:run_id>/journal", views.RunJournal.as_view(), name="run-journal"),
    path("runs/<uuid:run_id>/graph", views.RunGraph.as_view(), name="run-graph"),
    path("runs/<uuid:run_id>/cancel", views.RunCancel.as_view(), name="run-cancel"),
    path("runs/<uuid:run_id>/freeze/lift", views.FreezeLift.as_view(), name="run-freeze-lift"),
    path("run-templates", templates.TemplateList.as_view(), name="run-templates"),
    path("run-templates/<uuid:template_id>", templates.TemplateDetail.as_view(), name="run-template"),
    path(
        "run-templates/<uuid:template_id>/retire",
        templates.TemplateRetire.as_view(),
        name="run-template-retire",
    ),
    path(
        "run-templates/<uuid:template_id>/waivers",
        templates.TemplateWaivers.as_view(),
        name="run-template-waivers",
    ),
    path("workers/<uuid:worker_id>/revoke", views.WorkerRevoke.as_view(), name="worker-revoke"),
    path("uncertain-attempts", UncertainAttempts.as_view(), name="uncertain-attempts"),
    path(
        "runs/<uuid:run_id>/steps/<uuid:step_id>/resolution",
        views.StepResolution.as_view(),
        name="step-resolution",
    ),
    path(
        "runs/<uuid:run_id>/steps/<uuid:step_id>/attention",
        views.StepAttention.as_view(),
        name="step-attention",
    ),
]
