"""The routes of money."""

from django.urls import path

from usage.rest import views

urlpatterns = [
    path("budgets", views.BudgetList.as_view(), name="budgets"),
    path("budgets/<uuid:budget_id>", views.BudgetDetail.as_view(), name="budget"),
    path("budgets/<uuid:budget_id>/amount", views.BudgetAmount.as_view(), name="budget-amount"),
    path("budgets/<uuid:budget_id>/recurrence", views.BudgetRecurrence.as_view(), name="budget-recurrence"),
    path("budgets/<uuid:budget_id>/ledger", views.BudgetLedger.as_view(), name="budget-ledger"),
    path("usage", views.UsageReport.as_view(), name="usage"),
    path("reservations", views.ReservationList.as_view(), name="reservations"),
    path("reservations/<uuid:reservation_id>/hold", views.HoldEnd.as_view(), name="hold"),
    path("pricing-revisions", views.PricingList.as_view(), name="pricing-revisions"),
]
