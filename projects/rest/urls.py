"""The routes of projects."""

from django.urls import path

from projects.rest import credentials, identities, views

urlpatterns = [
    path("revocations", credentials.Revocations.as_view(), name="revocations"),
    path("identities", identities.Identities.as_view(), name="identities"),
    path("identities/<uuid:identity_id>/end", identities.IdentityEnd.as_view(), name="identity-end"),
    path("service-accounts", credentials.ServiceAccounts.as_view(), name="service-accounts"),
    path(
        "service-accounts/<uuid:account_id>/revoke",
        credentials.ServiceAccountRevoke.as_view(),
        name="service-account-revoke",
    ),
    path("projects", views.ProjectList.as_view(), name="projects"),
    path("projects/<uuid:project_id>", views.ProjectDetail.as_view(), name="project"),
    path("projects/<uuid:project_id>/suspend", views.ProjectSuspend.as_view(), name="project-suspend"),
    path("projects/<uuid:project_id>/resume", views.ProjectResume.as_view(), name="project-resume"),
    path("projects/<uuid:project_id>/kill", views.ProjectKill.as_view(), name="project-kill"),
    path("projects/<uuid:project_id>/environments", views.EnvironmentList.as_view(), name="environments"),
    path("projects/<uuid:project_id>/members", views.MemberList.as_view(), name="members"),
    path("projects/<uuid:project_id>/members/<uuid:member_id>", views.MemberDetail.as_view(), name="member"),
    path("projects/<uuid:project_id>/delegations", views.ProjectDelegations.as_view(), name="delegations"),
    path(
        "projects/<uuid:project_id>/delegations/<uuid:delegation_id>",
        views.DelegationDetail.as_view(),
        name="delegation",
    ),
]
