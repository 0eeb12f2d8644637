"""The routes of approvals and policy."""

from django.urls import path

from approvals.rest import views, waivers

urlpatterns = [
    path("approvals", views.ApprovalList.as_view(), name="approvals"),
    path("approvals/decisions", views.ApprovalDecisions.as_view(), name="approval-decisions"),
    path("approvals/<uuid:approval_id>", views.ApprovalDetail.as_view(), name="approval"),
    path("approvals/<uuid:approval_id>/decision", views.ApprovalDecision.as_view(), name="approval-decision"),
    path("waivers", waivers.WaiverListView.as_view(), name="waivers"),
    path("waivers/<uuid:waiver_id>", waivers.WaiverDetail.as_view(), name="waiver"),
    path("waivers/<uuid:waiver_id>/revoke", waivers.WaiverRevoke.as_view(), name="waiver-revoke"),
    path("policy-revisions", views.PolicyRevisionList.as_view(), name="policy-revisions"),
    path("policy-revisions/evaluate", views.PolicyEvaluation.as_view(), name="policy-evaluation"),
    path("policy-revisions/<str:revision>", views.PolicyRevisionDetail.as_view(), name="policy-revision"),
]
