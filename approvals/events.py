"""What approvals tell the rest of the control plane."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from approvals.states import (
    BREAK_GLASS,
    DECIDED,
    POLICY_PUBLISHED,
    REQUESTED,
    TERMINAL,
    WAIVER_CHANGED,
    WaiverState,
)
from factory.kernel.events import Event, FixedWords, Hash, event


@event(REQUESTED, consumers=("AuditService", "StudioBff", "StudioNotificationService"))
class ApprovalRequested(Event):
    """Somebody is waited for. A publication has neither run nor step; `subject` says what it is about."""

    approval_id: UUID
    run_id: UUID | None
    step_id: UUID | None
    tenant_id: str
    action_class: str
    proposal_hash: Hash
    approver_rule: str
    expires_at: datetime
    subject: str | None = None


@event(
    DECIDED,
    consumers=(
        "AgentRegistryService",
        "AgentRuntimeService",
        "AuditService",
        "EnvironmentPromotionService",
        "FleetIncidentService",
        "FleetRolloutService",
        "IaCProvisioningService",
        "LicenseService",
        "MarketplaceCatalogService",
        "MemoryPromotionService",
        "QualityScoreService",
        "StudioBff",
        "WorkflowEngineService",
    ),
)
class ApprovalDecided(Event):
    """A request is closed: by a person's decision, by its expiry, or because what it was about has moved."""

    approval_id: UUID
    run_id: UUID | None
    tenant_id: str
    state: Annotated[str, FixedWords(sorted(TERMINAL))]
    decided_by: str | None = None
    reason: str | None = None
    subject: str | None = None
    on_behalf_of: str | None = None
    break_glass: bool = False
    waiver_id: UUID | None = None


@event(BREAK_GLASS, consumers=("AuditService", "StudioNotificationService"))
class ApprovalBreakGlass(Event):
    """A PlatformAdmin decided outside the rule. `passed_over` could have decided: they are to be told now."""

    approval_id: UUID
    run_id: UUID | None
    tenant_id: str
    state: Annotated[str, FixedWords(sorted(TERMINAL))]
    decided_by: str
    reason: str
    passed_over: list[str]
    subject: str | None = None


@event(WAIVER_CHANGED, consumers=("AuditService", "StudioBff", "StudioNotificationService"))
class WaiverChanged(Event):
    """An approval in advance was asked for, given or refused, or has ended. `deciders` gave it."""

    waiver_id: UUID
    tenant_id: str
    project_id: UUID
    state: Annotated[str, FixedWords(WaiverState.values)]
    approval_id: UUID
    template_id: UUID
    workflow_id: str
    release_id: UUID
    action_class: str
    environment_ids: list[UUID]
    expires_at: datetime
    changed_by: str
    deciders: list[str]
    reason: str | None = None


@event(POLICY_PUBLISHED)
class PolicyRevisionPublished(Event):
    """From now on, new runs pin this revision."""

    tenant_id: str
    policy_id: str
    revision: str
    document_hash: str
    published_by: str
