"""What must be true of money in every snapshot of the database."""

from factory.evidence.auditor import invariant
from factory.evidence.readable import object_of, summand_of


@invariant("E1a", "A budget's figures are the sums of its ledger entries")
def figures_are_sums() -> str:
    return """
    SELECT b.tenant_id, 'budget:' || b.id,
           'row ' || concat_ws('/', b.amount, b.available, b.committed, b.spent, b.held)
           || ' entries ' || b.entries || ', ledger ' || concat_ws('/', l.granted, l.available, l.committed,
           l.spent, l.held) || ' entries ' || coalesce(l.entries, 0)
    FROM usage_budget b LEFT JOIN (
        SELECT budget_id, count(*) AS entries,
               coalesce(-sum(amount) FILTER (WHERE account = 'granted'), 0) AS granted,
               coalesce(sum(amount) FILTER (WHERE account = 'available'), 0) AS available,
               coalesce(sum(amount) FILTER (WHERE account = 'committed'), 0) AS committed,
               coalesce(sum(amount) FILTER (WHERE account = 'spent'), 0) AS spent,
               coalesce(sum(amount) FILTER (WHERE account = 'held'), 0) AS held
        FROM usage_ledgerentry GROUP BY budget_id
    ) l ON l.budget_id = b.id
    WHERE (b.amount, b.available, b.committed, b.spent, b.held, b.entries) IS DISTINCT FROM
          (coalesce(l.granted, 0), coalesce(l.available, 0), coalesce(l.committed, 0), coalesce(l.spent, 0),
           coalesce(l.held, 0), coalesce(l.entries, 0))
    """


@invariant("E1b", "A budget's figures are those of the reservations that draw on it")
def figures_are_those_of_reservations() -> str:
    return """
    SELECT b.tenant_id, 'budget:' || b.id,
           'committed/spent/held ' || concat_ws('/', b.committed, b.spent, b.held)
           || ', by reservations ' || concat_ws('/', coalesce(r.committed, 0), coalesce(r.spent, 0),
           coalesce(r.held, 0))
    FROM usage_budget b LEFT JOIN (
        SELECT h.budget_id, sum(r.spent) AS spent, sum(r.held) AS held,
               coalesce(sum(r.amount + r.extended) FILTER (WHERE r.state = 'Reserved'), 0) AS committed
        FROM usage_reservationhold h JOIN usage_reservation r ON r.id = h.reservation_id
        GROUP BY h.budget_id
    ) r ON r.budget_id = b.id
    WHERE (b.committed, b.spent, b.held) IS DISTINCT FROM
          (coalesce(r.committed, 0), coalesce(r.spent, 0), coalesce(r.held, 0))
    """


@invariant("E1c", "No reservation was made that the budget did not cover at that moment")
def never_overdrawn_by_a_reservation() -> str:
    return """
    SELECT tenant_id, 'budget:' || budget_id, 'entry ' || sequence || ' leaves ' || running FROM (
        SELECT tenant_id, budget_id, sequence, movement,
               sum(amount) OVER (PARTITION BY budget_id ORDER BY sequence) AS running
        FROM usage_ledgerentry WHERE account = 'available'
    ) entries WHERE movement IN ('Reserved', 'Extended') AND running < 0
    """


@invariant("E2a", "A run has one reservation")
def one_reservation_a_run() -> str:
    return """
    SELECT tenant_id, 'run:' || run_id, count(*) || ' reservations' FROM usage_reservation
    GROUP BY tenant_id, run_id HAVING count(*) > 1
    """


@invariant("E2b", "A reservation draws on every budget over its project, and a denied one on none")
def draws_on_every_budget() -> str:
    return """
    SELECT r.tenant_id, 'reservation:' || r.id, r.state || ' draws on ' || count(h.id) || ' budgets'
    FROM usage_reservation r LEFT JOIN usage_reservationhold h ON h.reservation_id = r.id
    GROUP BY r.tenant_id, r.id, r.state HAVING (r.state = 'Denied') <> (count(h.id) = 0)
    UNION ALL
    SELECT r.tenant_id, 'reservation:' || r.id, 'draws on budget ' || b.id || ' of another month or project'
    FROM usage_reservation r JOIN usage_reservationhold h ON h.reservation_id = r.id
    JOIN usage_budget b ON b.id = h.budget_id
    WHERE b.project_id <> r.project_id
       OR (r.created_at AT TIME ZONE 'UTC')::date NOT BETWEEN b.period_start AND b.period_end - 1
    UNION ALL
    SELECT r.tenant_id, 'reservation:' || r.id, 'does not draw on budget ' || b.id
    FROM usage_reservation r JOIN usage_budget b ON b.tenant_id = r.tenant_id
     AND (b.project_id = r.project_id OR b.project_id IS NULL)
     AND (r.created_at AT TIME ZONE 'UTC')::date BETWEEN b.period_start AND b.period_end - 1
     AND b.created_at < r.created_at
    WHERE r.state <> 'Denied' AND NOT EXISTS (
        SELECT 1 FROM usage_reservationhold h WHERE h.reservation_id = r.id AND h.budget_id = b.id)
    """


@invariant("E2d", "What was added to a reservation was booked in each of its budgets")
def extensions_are_booked() -> str:
    return """
    SELECT h.tenant_id, 'reservation:' || h.reservation_id,
           'in budget ' || h.budget_id || ': extended by ' || r.extended
           || ', booked ' || coalesce(sum(l.amount), 0)
    FROM usage_reservationhold h JOIN usage_reservation r ON r.id = h.reservation_id
    LEFT JOIN usage_ledgerentry l ON l.reservation_id = h.reservation_id AND l.budget_id = h.budget_id
         AND l.movement = 'Extended' AND l.account = 'committed'
    GROUP BY h.tenant_id, h.reservation_id, h.budget_id, r.extended
    HAVING r.extended <> coalesce(sum(l.amount), 0)
    """


@invariant("E3a", "What a reservation settled is the sum of its run's usage")
def settled_is_the_sum_of_usage() -> str:
    return """
    SELECT r.tenant_id, 'reservation:' || r.id, 'settled ' || r.spent || ', usage ' || coalesce(u.cost, 0)
    FROM usage_reservation r LEFT JOIN (
        SELECT tenant_id, run_id, sum(cost) AS cost FROM usage_usagerecord GROUP BY tenant_id, run_id
    ) u ON u.run_id = r.run_id AND u.tenant_id = r.tenant_id
    WHERE r.state NOT IN ('Reserved', 'Denied') AND r.spent <> coalesce(u.cost, 0)
    """


@invariant("E3b", "While usage is Uncertain, its share of what is left stays held until its hold is ended")
def uncertain_usage_is_held() -> str:
    return """
    SELECT r.tenant_id, 'reservation:' || r.id,
           'held ' || r.held || ' for ' || coalesce(u.later, 0) || ' of ' || coalesce(u.calls, 0)
           || ' calls of unknown cost, its hold ended ' || coalesce(r.hold_ended_at::text, 'never')
    FROM usage_reservation r LEFT JOIN (
        SELECT c.tenant_id, c.run_id, count(*) AS calls,
               count(*) FILTER (WHERE c.recorded_at > coalesce(e.hold_ended_at, '-infinity')) AS later
        FROM usage_usagerecord c
        JOIN usage_reservation e ON e.tenant_id = c.tenant_id AND e.run_id = c.run_id
        WHERE c.state = 'Uncertain' GROUP BY c.tenant_id, c.run_id
    ) u ON u.run_id = r.run_id AND u.tenant_id = r.tenant_id
    WHERE r.state NOT IN ('Reserved', 'Denied') AND r.held <> coalesce(
        div(greatest(r.amount + r.extended - r.spent, 0) * 1000000 * u.later, u.calls) / 1000000, 0)
    """


@invariant("E3c", "A cost is its quantities times the prices that were in force")
def costs_follow_from_prices() -> str:
    return f"""
    SELECT u.tenant_id, 'usage:' || u.id,
           'cost ' || u.cost || ', by its prices ' || coalesce(priced.cost::text, 'nothing')
    FROM usage_usagerecord u CROSS JOIN LATERAL (
        SELECT round(sum({summand_of("q.value")} * {summand_of("u.prices ->> q.key")}), 6) AS cost
        FROM jsonb_each_text({object_of("u.quantities")}) q
    ) priced WHERE u.cost IS NOT NULL AND u.prices <> '{{}}' AND u.cost IS DISTINCT FROM priced.cost
    UNION ALL
    SELECT u.tenant_id, 'usage:' || u.id, 'priced at ' || u.priced_at || ' by a revision of ' || p.valid_from
    FROM usage_usagerecord u JOIN usage_pricingrevision p ON p.id = u.pricing_revision_id
    WHERE p.valid_from > u.priced_at
    """


@invariant("E3d", "A hold was ended in each of its budgets, and only where that was booked")
def ended_holds_are_booked() -> str:
    return """
    SELECT h.tenant_id, 'reservation:' || h.reservation_id,
           'in budget ' || h.budget_id || ': its hold ended ' || coalesce(r.hold_ended_at::text, 'never')
           || ', booked ' || coalesce(max(l.posted_at)::text, 'never')
    FROM usage_reservationhold h JOIN usage_reservation r ON r.id = h.reservation_id
    LEFT JOIN usage_ledgerentry l ON l.reservation_id = h.reservation_id AND l.budget_id = h.budget_id
         AND l.movement = 'HoldEnded' AND l.account = 'held' AND l.amount < 0
    GROUP BY h.tenant_id, h.reservation_id, h.budget_id, r.hold_ended_at
    HAVING (r.hold_ended_at IS NULL) <> (count(l.id) = 0)
    """


@invariant("E4a", "The entries of a ledger transaction sum to 0 in each budget")
def transactions_balance() -> str:
    return """
    SELECT tenant_id, 'transaction:' || transaction_id, 'budget ' || budget_id || ' is off by ' || sum(amount)
    FROM usage_ledgerentry GROUP BY tenant_id, transaction_id, budget_id HAVING sum(amount) <> 0
    """


@invariant("E4b", "A budget's ledger has no gap, and each balance follows from the one before")
def ledgers_are_whole() -> str:
    return """
    SELECT tenant_id, 'budget:' || budget_id, 'entries ' || count(*) || ', numbered to ' || max(sequence)
    FROM usage_ledgerentry GROUP BY tenant_id, budget_id
    HAVING count(*) <> max(sequence) OR min(sequence) <> 1
    UNION ALL
    SELECT tenant_id, 'budget:' || budget_id,
           'entry ' || sequence || ' says ' || balance || ', the sum is ' || running
    FROM (
        SELECT tenant_id, budget_id, sequence, balance,
               sum(amount) OVER (PARTITION BY budget_id, account ORDER BY sequence) AS running
        FROM usage_ledgerentry
    ) entries WHERE balance <> running
    """


@invariant("E4c", "A receipt of a run, known by its provider and its id, was taken once")
def receipts_once() -> str:
    return """
    SELECT tenant_id, 'run:' || run_id,
           count(*) || ' usage records of the receipt ' || receipt_id || ' of ' || provider
    FROM usage_usagerecord GROUP BY tenant_id, run_id, provider, receipt_id HAVING count(*) > 1
    """


@invariant("E4d", "Every reservation was booked, and every end of one once")
def reservations_are_booked() -> str:
    return """
    SELECT h.tenant_id, 'reservation:' || h.reservation_id, 'in budget ' || h.budget_id || ': reserved '
           || count(DISTINCT l.transaction_id) FILTER (WHERE l.movement = 'Reserved') || ' times, ended '
           || count(DISTINCT l.transaction_id) FILTER (WHERE l.movement IN ('Settled', 'Released', 'Expired'))
    FROM usage_reservationhold h JOIN usage_reservation r ON r.id = h.reservation_id
    LEFT JOIN usage_ledgerentry l ON l.reservation_id = h.reservation_id AND l.budget_id = h.budget_id
    WHERE r.amount > 0
    GROUP BY h.tenant_id, h.reservation_id, h.budget_id, r.state
    HAVING count(DISTINCT l.transaction_id) FILTER (WHERE l.movement = 'Reserved') <> 1
        OR count(DISTINCT l.transaction_id) FILTER (WHERE l.movement IN ('Settled', 'Released', 'Expired'))
           <> CASE WHEN r.state = 'Reserved' THEN 0 ELSE 1 END
    """


@invariant("E4e", "What was added up of a run's usage by the day is the sum of its records")
def sums_are_those_of_records() -> str:
    return f"""
    SELECT coalesce(s.tenant_id, u.tenant_id), 'run:' || coalesce(s.run_id, u.run_id),
           'of ' || coalesce(s.name, u.name) || ' on ' || coalesce(s.day, u.day) || ': '
           || concat_ws('/', s.calls, s.uncertain, s.cost, s.estimated, s.input_tokens, s.output_tokens)
           || ', by records '
           || concat_ws('/', u.calls, u.uncertain, u.cost, u.estimated, u.input_tokens, u.output_tokens)
    FROM usage_usagesum s FULL JOIN (
        SELECT tenant_id, project_id, run_id, (priced_at AT TIME ZONE 'UTC')::date AS day, kind, provider,
               name, count(*) AS calls, count(*) FILTER (WHERE state = 'Uncertain') AS uncertain,
               coalesce(sum(cost), 0) AS cost,
               coalesce(sum(cost) FILTER (WHERE state = 'Estimated'), 0) AS estimated,
               coalesce(sum(round({summand_of("quantities ->> 'inputTokens'")}, 6)), 0) AS input_tokens,
               coalesce(sum(round({summand_of("quantities ->> 'outputTokens'")}, 6)), 0) AS output_tokens
        FROM usage_usagerecord GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) u ON (s.tenant_id, s.project_id, s.run_id, s.day, s.kind, s.provider, s.name)
         = (u.tenant_id, u.project_id, u.run_id, u.day, u.kind, u.provider, u.name)
    WHERE (s.calls, s.uncertain, s.cost, s.estimated, s.input_tokens, s.output_tokens) IS DISTINCT FROM
          (u.calls, u.uncertain, u.cost, u.estimated, u.input_tokens, u.output_tokens)
    """
