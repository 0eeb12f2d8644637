# ruff: noqa: E501  what a column holds is SQL, one line each
"""Which tables grow with the work, and how their rows differ: few things are open, most are over.

A million rows come in life where each run, or each step of one, writes some: those of `MANY`. What people make
(releases, templates, waivers, members, budgets) stays at thousands: `SOME`. `BIG` is a run with thousands of
steps and entries of its own.
"""

from benchmarks.lists.growing import Grown, kind_of

BIG = 5_000
_PERSON = "'person' || m % 700 || '@bench.test'"
PERSON = (
    f"CASE WHEN m % 4000 = 7 THEN 'small-requester@bench.test' WHEN m % 997 = 5 THEN 'requester@large.test' "
    f"ELSE {_PERSON} END"
)
"""The small project's requester asked for few of its runs, the large one's for a thousandth of them."""
STEPS = f"CASE WHEN n BETWEEN {BIG + 1} AND {BIG + 2000} THEN {BIG} ELSE n END"
ENTRIES = f"CASE WHEN n BETWEEN {BIG + 1} AND {BIG + 20000} THEN {BIG} ELSE n END"
CLASSES = (
    "CASE WHEN n % 3000 = 11 THEN 'production' WHEN n % 100 = 12 THEN 'external' "
    "WHEN n % 700 = 13 THEN 'spend' ELSE 'shared-write' END"
)
FAILURES = (
    "CASE WHEN t.failure_class = '' THEN '' ELSE (ARRAY['permanent', 'transient', 'validation', 'budget', "
    "'policy-denied', 'uncertain'])[1 + bench_skew(n, 3, 6)] END"
)
WORKFLOW = "(SELECT array_agg(workflow_id ORDER BY workflow_id) FROM registry_assetworkflow)[1 + bench_skew(n, 4, 12)]"


def _key(table: str, number: str) -> str:
    return f"bench_key({kind_of(table)}+BESIDE, {number})"


MANY = (
    Grown("runs_snapshot", "created_at", share=0.1),
    Grown(
        "runs_run", "created_at",
        like=(
            ("n <= 410", "finished_at IS NULL"),
            ("n % 100 < 12", "state = 'Failed'"), ("n % 100 < 20", "state = 'Cancelled'"),
            ("true", "state = 'Completed'"),
        ),
        values={
            "idempotency_key": "'k' || n", "requested_by": PERSON, "requester_person": PERSON,
            "state": "CASE WHEN n <= 60 THEN 'Accepted' WHEN n <= 260 THEN 'Running' WHEN n <= 400 THEN 'Waiting' "
            "WHEN n <= 410 THEN 'Cancelling' ELSE t.state END",
            "failure_class": FAILURES, "workflow_id": WORKFLOW, "previous_run_id": "NULL",
            "template_id": "CASE WHEN n % 20 = 1 THEN (SELECT min(id::text)::uuid FROM runs_runtemplate) END",
        },
    ),
    Grown(
        "runs_step", "created_at", run=STEPS,
        like=(
            ("n <= 400", "state = 'Running'"), ("n % 100 < 12", "state = 'Failed'"),
            ("n % 100 < 15", "state = 'Cancelled'"), ("true", "state = 'Succeeded'"),
        ),
        values={
            "step_run_id": "'s' || n", "ordinal": "n + 1000", "finished_at": "CASE WHEN t.finished_at IS NOT NULL THEN bench_at(n) + interval '90 seconds' END",
            "attention": "CASE WHEN n % 5000 = 0 THEN 'uncertain' WHEN n % 90000 = 1 THEN 'violation' WHEN n % 70000 = 1 THEN 'late-effect' ELSE t.attention END",
        },
    ),
    Grown(
        "runs_attempt", "dispatched_at", run=STEPS, share=0.3,
        like=(
            ("n <= 300", "state = 'Open'"), ("n <= 400", "state = 'Parked'"),
            ("n % 5000 = 0", "state = 'Uncertain'"), ("n % 100 < 12", "state = 'Failed'"),
            ("true", "state = 'Succeeded'"),
        ),
        values={"settled_at": "t.settled_at + (bench_at(n) - t.dispatched_at) + n % 97 * interval '1 second'"},
    ),
    Grown(
        "runs_lease", "offered_at", run=STEPS, share=0.1,
        like=(("n <= 60", "state = 'Offered'"), ("n <= 300", "state = 'Held'"), ("n % 100 < 5", "state = 'Released'"), ("true", "state = 'Settled'")),
        values={"fencing_token": "n + 1000 + 1000000000::bigint * (0+BESIDE)"},
    ),
    Grown("runs_receipt", "recorded_at", run=STEPS, share=0.1, values={"receipt_id": "'r' || n"}),
    Grown("approvals_proposal", "created_at", share=0.1),
    Grown(
        "approvals_approvalrequest", "requested_at", run=STEPS,
        like=(
            ("n <= 300", "state = 'Pending'"), ("n % 100 < 10", "state = 'Rejected'"),
            ("n % 100 < 16", "state = 'Stale'"), ("n % 100 < 20", "state = 'Cancelled'"),
            ("true", "state = 'Approved' AND waiver_id IS NULL AND decision = 'approve' AND subject_type = 'run'"),
        ),
        values={
            "requested_by": PERSON, "requester_person": PERSON, "author_person": "''", "action_class": CLASSES,
            "break_glass": "t.decision = 'approve' AND n % 20000 = 21",
            "passed_over": "CASE WHEN t.decision = 'approve' AND n % 20000 = 21 THEN jsonb_build_array('reviewer@large.test') ELSE t.passed_over END",
            "waiver_id": "CASE WHEN t.state = 'Approved' AND n % 50 = 31 THEN (SELECT min(id::text)::uuid FROM approvals_waiver) END",
            "decided_at": "t.decided_at + (bench_at(n) - t.requested_at) + n % 5000 * interval '1 second'",
            "closed_at": "t.closed_at + (bench_at(n) - t.requested_at) + n % 5000 * interval '1 second'",
            "proposal_hash": "'sha256:' || md5('p' || n) || md5('q' || n)", "renews": "NULL",
        },
    ),
    Grown(
        "approvals_vote", "voted_at", share=0.05, values={"approval_id": _key("approvals_approvalrequest", "n")},
        first="INSERT INTO approvals_vote (tenant_id, id, approval_id, voter, person, acting_for, version, "
        "proposal_hash, reason, voted_at) SELECT tenant_id, gen_random_uuid(), id, 'a', 'a', '', version, "
        "proposal_hash, '', requested_at FROM approvals_approvalrequest WHERE tenant_id = %(tenant)s LIMIT 1",
    ),
    Grown(
        "approvals_authorization", "authorized_at", share=0.1, run=STEPS,
        first="INSERT INTO approvals_authorization (tenant_id, id, approval_id, run_id, step_id, attempt_id, "
        "lease_id, fencing_token, proposal_hash, authorized_by, authorized_at) SELECT tenant_id, "
        "gen_random_uuid(), id, run_id, step_id, attempt_id, id, 1, proposal_hash, 'w', requested_at FROM "
        "approvals_approvalrequest WHERE tenant_id = %(tenant)s AND attempt_id IS NOT NULL LIMIT 1",
    ),
    Grown(
        "factory_journalentry", "occurred_at", run=ENTRIES,
        like=(("n % 5 = 0", "entity = 'run' AND from_state = 'None'"),),
        values={
            "sequence": "n + 1000", "stream_id": _key("runs_run", "m"),
            "actor": f"CASE WHEN t.actor_kind = 'person' THEN {PERSON} ELSE t.actor END",
            "entity_id": f"CASE t.entity WHEN 'run' THEN {_key('runs_run', 'm')} WHEN 'step' THEN "
            f"{_key('runs_step', 'n')} ELSE {_key('other', 'n')} END",
        },
    ),
    Grown(
        "factory_auditentry", "occurred_at", run=ENTRIES,
        values={
            "sequence": "n + 1000", "stream_id": _key("other", "m"),
            "actor": f"CASE WHEN t.actor_kind = 'person' THEN {PERSON} ELSE t.actor END",
            "outcome": "CASE WHEN n % 9000 = 1 THEN 'refused' ELSE t.outcome END",
            "subject": f"CASE WHEN t.subject LIKE 'run:%' THEN 'run:' || {_key('runs_run', 'm')} "
            f"WHEN strpos(t.subject, ':') > 0 THEN split_part(t.subject, ':', 1) || ':' || {_key('other', 'n')} ELSE t.subject END",
        },
    ),
    Grown(
        "factory_outboxevent", "occurred_at", run=ENTRIES,
        values={
            "sequence": "n + 1000",
            "handled_at": "CASE WHEN n > 20 AND n % 300000 <> 17 THEN bench_at(n) + interval '1 second' END",
            "streamed_at": "CASE WHEN n > 200 AND n % 200000 <> 18 THEN bench_at(n) + interval '1 second' END",
            "handle_set_aside_at": "CASE WHEN n % 300000 = 17 THEN bench_at(n) + interval '1 day' END",
            "stream_set_aside_at": "CASE WHEN n % 200000 = 18 THEN bench_at(n) + interval '1 day' END",
        },
    ),
    Grown(
        "factory_webhookdelivery", "created_at", run=ENTRIES, share=0.2,
        values={
            "sequence": "n + 1000", "delivered_at": "CASE WHEN n > 100 AND n % 100000 <> 19 THEN bench_at(n) + interval '1 second' END",
            "set_aside_at": "CASE WHEN n % 100000 = 19 THEN bench_at(n) + interval '1 day' END",
        },
    ),
    Grown(
        "usage_reservation", "created_at",
        like=(("n <= 410", "state = 'Reserved' AND dispatched_at IS NOT NULL"), ("n % 100 < 3", "state = 'Released'"), ("true", "state = 'Settled'")),
    ),
    Grown("usage_reservationhold", "id", share=0.05),
    Grown(
        "usage_ledgerentry", "posted_at",
        values={
            "sequence": "n + 1000",
            "budget_id": f"CASE WHEN n % 2 = 0 THEN {_key('usage_budget', '4 + 4 * bench_month(n)')} "
            f"ELSE {_key('usage_budget', '4 + 4 * bench_month(n) + (CASE WHEN m % 2000 = 7 THEN 1 WHEN m % 10 = 3 THEN 2 ELSE 3 END)')} END",
        },
    ),
    Grown(
        "usage_usagerecord", "priced_at", run=STEPS,
        values={
            "receipt_id": "'r' || n",
            "state": "CASE WHEN n % 150 = 3 THEN 'Uncertain' WHEN n % 10 = 4 THEN 'Estimated' ELSE 'Confirmed' END",
            "name": "'model-' || bench_skew(n, 5, 40)", "kind": "CASE WHEN n % 30 = 1 THEN 'tool' ELSE 'model' END",
        },
    ),
    Grown(
        "usage_usagesum", "id",
        values={
            "name": "'model-' || bench_skew(n, 5, 40)", "day": "(bench_at(n) AT TIME ZONE 'UTC')::date",
            "kind": "CASE WHEN n % 30 = 1 THEN 'tool' ELSE 'model' END",
        },
    ),
    Grown(
        "notifications_notice", "made_at",
        values={"remind_at": "NULL", "kind": "CASE WHEN n % 40000 = 1 THEN 'too-few' WHEN n % 10000 = 2 THEN 'break-glass' WHEN n % 3 = 0 THEN 'decided' ELSE 'requested' END"},
    ),
    Grown(
        "notifications_notification", "created_at",
        values={
            "subject": "'person' || m % 700 || '@bench.test'",
            "sent_at": "CASE WHEN n > 50 AND n % 5000 <> 9 AND n % 100 <> 8 THEN bench_at(n) + interval '2 seconds' END",
            "set_aside_at": "CASE WHEN n % 5000 = 9 AND n > 50 THEN bench_at(n) + interval '1 day' END",
            "dropped_at": "CASE WHEN n % 100 = 8 AND n > 50 THEN bench_at(n) + interval '1 hour' END",
        },
        first="INSERT INTO notifications_notification (tenant_id, id, notice_id, project_id, subject, medium, "
        "created_at, attempts, error, sent_at) SELECT tenant_id, gen_random_uuid(), id, project_id, 'first', "
        "'email', made_at, 1, '', made_at FROM notifications_notice WHERE tenant_id = %(tenant)s LIMIT 1",
    ),
)  # fmt: skip

SOME = (
    Grown(
        "usage_budget", "created_at", most=51,
        values={
            "project_id": "CASE n % 4 WHEN 1 THEN bench_project(7) WHEN 2 THEN bench_project(3) WHEN 3 THEN bench_project(1) END",
            "period_start": "date_trunc('month', now() - (n / 4 + 1) * interval '1 month')",
            "period_end": "date_trunc('month', now() - (n / 4 + 1) * interval '1 month') + interval '1 month'",
        },
    ),
    Grown("registry_closure", "resolved_at", most=20_000, values={"hash": "'sha256:' || md5('h' || n) || md5('i' || n)"}),
    Grown("registry_release", "created_at", most=20_000, values={"semver": "'3.' || n || '.0'", "commit": "md5('c' || n) || '01234567'", "author": _PERSON, "approval_id": "NULL"}, like=(("true", "state = 'Published'"),)),
    Grown("registry_evaluationrecord", "recorded_at", most=20_000),
    Grown("registry_alias", "id", most=2_000, values={"name": "'alias-' || n"}),
    Grown("registry_aliasmove", "moved_at", most=20_000, values={"moved_by": _PERSON, "version": "n + 1000"}),
    Grown("projects_delegation", "lent_at", most=20_000, values={"delegate": _PERSON, "ended_at": "bench_at(n) + interval '1 hour'", "state": "CASE WHEN n < 50 THEN t.state ELSE 'Expired' END", "delegator": "'lender' || n || '@bench.test'"}),
    Grown("projects_membership", "created_at", most=5_000, values={"subject": "'person' || n || '@bench.test'", "email": "'person' || n || '@bench.test'"}),
    Grown("approvals_waiver", "requested_at", most=5_000, like=(("true", "state = 'Requested'"),)),
    Grown("approvals_policyrevision", "published_at", most=500, values={"number": "n + 1000"}),
    Grown("runs_runtemplate", "created_at", most=2_000, values={"name": "'template ' || n"}),
    Grown("runs_worker", "registered_at", most=2_000, values={"instance_id": "gen_random_uuid()", "name": "'worker-' || n"}),
    Grown("factory_revoked_token", "revoked_at", most=20_000, values={"jti": "'jti-' || n"}),
    Grown("usage_pricingrevision", "valid_from", most=500, values={"number": "n + 1000"}),
    Grown("factory_webhooksubscription", "created_at", most=200),
    Grown(
        "factory_verification", "started_at", most=2_000,
        first="INSERT INTO factory_verification (id, started_at, seconds, rules, violations, walls, unchecked, anchors) "
        "SELECT gen_random_uuid(), now(), 3, 60, 0, '[]', '[]', '' WHERE %(tenant)s <> ''",
    ),
    Grown(
        "factory_finding", "found_at", most=20_000,
        first="INSERT INTO factory_finding (tenant_id, id, verification_id, code, subject, detail, found_at) "
        "VALUES (%(tenant)s, gen_random_uuid(), gen_random_uuid(), 'B1', 'run:x', 'found', now())",
    ),
)  # fmt: skip
