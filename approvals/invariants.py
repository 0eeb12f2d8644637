"""What the auditor checks about approvals: who decided, on what, and what was done with it."""

from factory.auditing import invariant


@invariant("D1", "Nobody has decided on what they asked for or wrote: people are compared, not accounts")
def duties_separate() -> str:
    return """
        SELECT a.tenant_id, 'approval:' || a.id, a.decided_by || ' asked for it, wrote it, or owns who did'
        FROM approvals_approvalrequest a
        LEFT JOIN projects_serviceaccount asked
          ON asked.subject = a.requested_by AND asked.tenant_id = a.tenant_id
        LEFT JOIN projects_serviceaccount decider
          ON decider.subject = a.decided_by AND decider.tenant_id = a.tenant_id
        WHERE a.decided_by <> '' AND (
            a.decided_person = ''
            OR ARRAY[a.decided_by, a.decided_person, decider.owner]::text[]
               && ARRAY[a.requested_by, a.requester_person, nullif(a.author_person, ''), asked.owner]::text[])
    """


@invariant("D1b", "Every answer has its person, its time and its words, and nothing else has")
def answers_whole() -> str:
    return """
        SELECT tenant_id, 'approval:' || id, state || ' with the decision ' || quote_literal(decision)
        FROM approvals_approvalrequest
        WHERE NOT CASE state
            WHEN 'Approved' THEN decision = 'approve' AND decided_by <> '' AND decided_at IS NOT NULL
            WHEN 'Rejected' THEN decision = 'reject' AND decided_by <> '' AND decided_at IS NOT NULL
            WHEN 'Stale' THEN decision = ''
                OR (decision = 'request_changes' AND decided_by <> '' AND reason <> '')
            ELSE decision = '' AND decided_by = '' AND decided_at IS NULL END
           OR decided_at >= expires_at OR (state = 'Expired' AND closed_at < expires_at)
    """


@invariant("D2", "What is decided about is what was asked: the request's hash is that of the stored bytes")
def proposals_genuine() -> str:
    return """
        SELECT a.tenant_id, 'approval:' || a.id, 'asked about ' || a.proposal_hash || ', stored is '
               || coalesce('sha256:' || encode(sha256(p.content), 'hex'), 'nothing')
        FROM approvals_approvalrequest a LEFT JOIN approvals_proposal p
          ON p.id = a.proposal_id AND p.tenant_id = a.tenant_id
        WHERE p.id IS NULL OR a.proposal_hash <> p.hash
           OR p.hash <> 'sha256:' || encode(sha256(p.content), 'hex')
    """


@invariant("D2b", "Each request rests on the policy revision that it names, and asks those whom it may")
def policy_pinned() -> str:
    return """
        SELECT a.tenant_id, 'approval:' || a.id, 'names ' || a.policy_revision || ' and rests on '
               || coalesce('r' || r.number, 'nothing') || ', decided by ' || a.approver_roles
        FROM approvals_approvalrequest a LEFT JOIN approvals_policyrevision r
          ON r.id = a.policy_id AND r.tenant_id = a.tenant_id
        WHERE r.id IS NULL OR a.policy_revision <> 'r' || r.number
           OR NOT a.approver_roles <@ '["Reviewer", "WorkspaceAdmin"]'
           OR (a.action_class = 'publication' AND NOT a.approver_roles <@ '["Reviewer"]')
           OR a.expires_at > a.requested_at + interval '72 hours'
    """


@invariant("D3", "An approval is used once, for its own step and proposal, within its validity")
def used_as_signed() -> str:
    return """
        SELECT u.tenant_id, 'authorization:' || u.id, concat_ws(', ',
               CASE WHEN a.id IS NULL THEN 'it rests on no approval' END,
               CASE WHEN a.state <> 'Approved' THEN 'the request is ' || a.state END,
               CASE WHEN u.authorized_at < a.decided_at THEN 'taken before the decision' END,
               CASE WHEN u.authorized_at >= a.valid_until + u.paused THEN 'taken after its validity' END,
               CASE WHEN u.proposal_hash <> a.proposal_hash THEN 'taken for another proposal' END,
               CASE WHEN (u.run_id, u.step_id) IS DISTINCT FROM (a.run_id, a.step_id)
                    THEN 'taken by another step' END,
               CASE WHEN u.uses > 1 THEN 'taken ' || u.uses || ' times' END)
        FROM (SELECT z.*, count(*) OVER (PARTITION BY z.approval_id) AS uses,
                     coalesce(projects_paused(q.project_id, q.valid_until - q.valid_for, z.authorized_at),
                              interval '0') AS paused
              FROM approvals_authorization z
              LEFT JOIN approvals_approvalrequest q ON q.id = z.approval_id AND q.tenant_id = z.tenant_id) u
        LEFT JOIN approvals_approvalrequest a ON a.id = u.approval_id AND a.tenant_id = u.tenant_id
        WHERE a.id IS NULL OR a.state <> 'Approved' OR u.uses > 1 OR u.proposal_hash <> a.proposal_hash
           OR u.authorized_at < a.decided_at OR u.authorized_at >= a.valid_until + u.paused
           OR (u.run_id, u.step_id) IS DISTINCT FROM (a.run_id, a.step_id)
    """


@invariant("D3b", "Every use is journaled, and every journaled use is there")
def uses_journaled() -> str:
    return """
        SELECT coalesce(u.tenant_id, j.tenant_id), 'approval:' || coalesce(u.approval_id, j.entity_id),
               CASE WHEN u.id IS NULL THEN 'the journal knows a use that is not there'
                    ELSE 'the journal does not know of its use' END
        FROM approvals_authorization u FULL JOIN
             (SELECT * FROM factory_journalentry WHERE entity = 'approval' AND cause = 'Authorized') j
          ON j.entity_id = u.approval_id AND j.tenant_id = u.tenant_id
         AND j.detail->>'attemptId' = u.attempt_id::text
        WHERE u.id IS NULL OR j.entity_id IS NULL
    """


@invariant("D5", "Policy revisions are numbered from 1 without a gap")
def policies_gapless() -> str:
    return """
        SELECT tenant_id, 'policy:' || policy_id, count(*) || ' revisions from ' || min(number) || ' to '
               || max(number)
        FROM approvals_policyrevision GROUP BY tenant_id, policy_id
        HAVING min(number) <> 1 OR max(number) <> count(*)
    """
