"""The commands of runs.

For people and services: `submit`, `cancel_run`, `resolve_step`, `create_run_template`, `request_waiver`. For
workers, each with the attempt's lease and token: `acquire_lease`, `record_receipts`, `request_approval`,
`take_authorization`, `report_outcome`; and without a tenant: `register_worker`, `heartbeat`,
`runs.dispatch.poll_worker` and `drain_worker`. A worker's context has no tenant:
`runs.selectors.assignment_scope(ctx, attempt_id)` gives the one to call the lease's commands with, or refuses
as `AttemptNotFound`.
"""

from runs.commands.acquire_lease import acquire_lease
from runs.commands.add_up_usage import add_up_usage
from runs.commands.cancel_run import cancel_run
from runs.commands.close_attention import close_attention
from runs.commands.dispatch_step import dispatch_step
from runs.commands.expire_lease import (
    enforce_deadline,
    expire_lease,
    withdraw_from_drained,
    withdraw_from_frozen,
)
from runs.commands.follow_withdrawal import follow_withdrawal
from runs.commands.freezing import freeze_run, lift_freeze
from runs.commands.kill_runs import cancel_killed_run, finish_kill_switch
from runs.commands.pools import change_quota, leave_tenant, serve_tenant
from runs.commands.record_receipts import record_receipts
from runs.commands.recover_lease import recover_lease
from runs.commands.report import report
from runs.commands.report_outcome import report_outcome
from runs.commands.request_approval import ParkRequest, request_approval
from runs.commands.request_waiver import request_waiver
from runs.commands.resolve_step import resolve_step
from runs.commands.revoke_worker import revoke_worker
from runs.commands.second_chances import (
    complete_run_when_told,
    create_step_and_dispatch,
    fail_run_on_budget_denial,
    fail_run_when_told,
    release_first_step,
)
from runs.commands.start_run import fail_run_on_expired_reservation, start_run
from runs.commands.submit_run import submit_run, submit_under_key
from runs.commands.take_authorization import take_authorization
from runs.commands.templates import create_run_template, retire_run_template
from runs.commands.workers import WorkerView, heartbeat, register_worker, start_draining, undrain

__all__ = [
    "ParkRequest",
    "WorkerView",
    "acquire_lease",
    "add_up_usage",
    "cancel_killed_run",
    "cancel_run",
    "change_quota",
    "close_attention",
    "complete_run_when_told",
    "create_run_template",
    "create_step_and_dispatch",
    "dispatch_step",
    "enforce_deadline",
    "expire_lease",
    "fail_run_on_budget_denial",
    "fail_run_on_expired_reservation",
    "fail_run_when_told",
    "finish_kill_switch",
    "follow_withdrawal",
    "freeze_run",
    "heartbeat",
    "leave_tenant",
    "lift_freeze",
    "record_receipts",
    "recover_lease",
    "register_worker",
    "release_first_step",
    "report",
    "report_outcome",
    "request_approval",
    "request_waiver",
    "resolve_step",
    "retire_run_template",
    "revoke_worker",
    "serve_tenant",
    "start_draining",
    "start_run",
    "submit_run",
    "submit_under_key",
    "take_authorization",
    "undrain",
    "withdraw_from_drained",
    "withdraw_from_frozen",
]
