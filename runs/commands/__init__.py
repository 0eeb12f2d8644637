"""The commands of runs.

For people and services: `submit_run`, `cancel_run`, `resolve_step`. For workers, each with the attempt's
lease and token: `acquire_lease`, `record_receipts`, `request_approval`, `take_authorization`,
`report_outcome`; and without a tenant: `register_worker`, `drain_worker`, `runs.dispatch.poll_worker`.
A worker's context has no tenant: `runs.selectors.assignment_scope(ctx, attempt_id)` gives the one to call
the lease's commands with, or refuses as `AttemptNotFound`.
"""
