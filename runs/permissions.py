"""Who may call what here.

A worker holds no role: its pool, its lease and its fencing token decide. Whether a person may cancel a
run is judged by the command, because its requester always may.
"""

from factory.kernel.context import Context
from factory.kernel.permissions import permit
from projects.states import ROLES, Role

SUBMITTERS = (Role.REQUESTER, Role.OPERATOR, Role.WORKSPACE_ADMIN)
KEEPERS = (Role.OPERATOR, Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN)
TEMPLATERS = (Role.OPERATOR, Role.WORKSPACE_ADMIN)
WORKERS = ("worker",)
SYSTEM = ("system",)


PERMITS = (
    permit("SubmitRun", scope="runs.write", roles=SUBMITTERS),
    permit("CreateRunTemplate", scope="runs.write", roles=TEMPLATERS),
    permit("RetireRunTemplate", scope="runs.write", roles=KEEPERS),
    permit("RequestWaiver", scope="runs.write", roles=TEMPLATERS),
    permit("ListRunTemplates", scope="runs.read", roles=ROLES),
    permit("ReadRunTemplate", scope="runs.read", roles=ROLES),
    permit("CancelRun", scope="runs.write", roles=None),
    permit("ResolveUncertainStep", scope="runs.write", roles=(Role.OPERATOR,)),
    permit("CloseAttention", scope="runs.write", roles=(Role.OPERATOR,)),
    permit(
        "DrainWorkerByOperator",
        scope="runs.write",
        roles=(Role.OPERATOR, Role.PLATFORM_ADMIN),
        level="tenant",
    ),
    permit("UndrainWorker", scope="runs.write", roles=(Role.OPERATOR, Role.PLATFORM_ADMIN), level="tenant"),
    permit("ChangeTenantQuota", scope="projects.write", roles=(Role.PLATFORM_ADMIN,), level="tenant"),
    permit("ListWorkers", scope="runs.read", roles=ROLES, level="tenant"),
    permit("RevokeWorker", scope="runs.write", roles=KEEPERS, level="tenant"),
    permit("ListRefusedReceipts", scope="runs.read", roles=None, level="tenant"),
    permit("ListUncertainAttempts", scope="runs.read", roles=KEEPERS),
    permit("ListRuns", scope="runs.read", roles=ROLES),
    permit("ReadRun", scope="runs.read", roles=ROLES),
    permit("ReadRunJournal", scope="runs.read", roles=ROLES),
    permit("ReadRunGraph", scope="runs.read", roles=ROLES),
    permit("WatchRuns", scope="runs.read", roles=ROLES),
    permit("RegisterWorker", scope="worker", roles=None, kinds=WORKERS),
    permit("HeartbeatWorker", scope="worker", roles=None, kinds=WORKERS),
    permit("DrainWorker", scope="worker", roles=None, kinds=WORKERS),
    permit("AcquireLease", scope="worker", roles=None, kinds=WORKERS),
    permit("RecordReceipts", scope="worker", roles=None, kinds=WORKERS),
    permit("RequestApproval", scope="worker", roles=None, kinds=WORKERS),
    permit("TakeAuthorization", scope="worker", roles=None, kinds=WORKERS),
    permit("ReportAttemptOutcome", scope="worker", roles=None, kinds=WORKERS),
    permit("WatchPool", scope="worker", roles=None, kinds=WORKERS),
    permit("LoadReleaseForWork", scope="worker", roles=None, kinds=WORKERS),
    permit("LiftFreeze", scope="runs.write", roles=("PlatformAdmin",), level="tenant"),
    permit("FreezeRun", scope=None, roles=(), kinds=SYSTEM),
    permit("StartRun", scope=None, roles=(), kinds=SYSTEM),
    permit("FailRunOnExpiredReservation", scope=None, roles=(), kinds=SYSTEM),
    permit("CreateStepAndDispatch", scope=None, roles=(), kinds=SYSTEM),
    permit("CompleteRun", scope=None, roles=(), kinds=SYSTEM),
    permit("FailRun", scope=None, roles=(), kinds=SYSTEM),
    permit("ReleaseFirstStepOnReservation", scope=None, roles=(), kinds=SYSTEM),
    permit("FailRunOnBudgetDenial", scope=None, roles=(), kinds=SYSTEM),
    permit("DispatchStep", scope=None, roles=(), kinds=SYSTEM),
    permit("ExpireLease", scope=None, roles=(), kinds=SYSTEM),
    permit("RecoverLease", scope=None, roles=(), kinds=SYSTEM),
    permit("AddUpUsageAgain", scope=None, roles=(), kinds=SYSTEM),
    permit("WithdrawOffer", scope=None, roles=(), kinds=SYSTEM),
    permit("WithdrawFrozenOffer", scope=None, roles=(), kinds=SYSTEM),
    permit("EnforceDeadline", scope=None, roles=(), kinds=SYSTEM),
    permit("FollowReleaseDecree", scope=None, roles=(), kinds=SYSTEM),
    permit("CancelKilledRun", scope=None, roles=(), kinds=SYSTEM),
    permit("FinishKillSwitch", scope=None, roles=(), kinds=SYSTEM, level="tenant"),
    permit("ServeTenant", scope=None, roles=(), kinds=SYSTEM),
    permit("LeaveTenant", scope=None, roles=(), kinds=SYSTEM),
)


def sees_refused(ctx: Context) -> bool:
    """Return whether the caller looks after what was paid or run here: by the grant finance, or by a role."""
    actor = ctx.actor
    return actor.kind == "system" or "finance" in actor.grants or bool(actor.roles & set(map(str, KEEPERS)))
