"""The walls around money: nothing that was booked, priced or recorded changes any more."""

from django.db import migrations

from factory.kernel.migration_operations import AppendOnly, JournalRequired, MutableColumns, TenantWalls

WHOLE_MONTH = """
ALTER TABLE usage_budget ADD CONSTRAINT usage_budget_whole_month
CHECK (period_end = (period_start + interval '1 month')::date)
"""

BALANCED = """
CREATE FUNCTION usage_require_balance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE off numeric;
BEGIN
    SELECT sum(amount) INTO off FROM usage_ledgerentry
    WHERE transaction_id = NEW.transaction_id AND budget_id = NEW.budget_id;
    IF off <> 0 THEN
        RAISE EXCEPTION 'ledger transaction % is off by % in budget %', NEW.transaction_id, off, NEW.budget_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON usage_ledgerentry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION usage_require_balance();
ALTER TABLE usage_ledgerentry ENABLE ALWAYS TRIGGER balanced;
"""

FIGURES = ("amount", "available", "committed", "spent", "held", "entries")
SUMS = ("calls", "uncertain", "cost", "estimated", "input_tokens", "output_tokens")


class Migration(migrations.Migration):
    dependencies = [("factory", "0002_walls"), ("projects", "0002_walls"), ("usage", "0001_initial")]
    operations = [
        TenantWalls("Budget"),
        MutableColumns("Budget", columns=("state", *FIGURES, "version", "updated_at")),
        JournalRequired("Budget"),
        migrations.RunSQL(
            WHOLE_MONTH, "ALTER TABLE usage_budget DROP CONSTRAINT IF EXISTS usage_budget_whole_month"
        ),
        TenantWalls("PricingRevision"),
        AppendOnly("PricingRevision"),
        JournalRequired("PricingRevision"),
        TenantWalls("Reservation", scan=("id", "tenant_id", "due_at")),
        MutableColumns(
            "Reservation",
            columns=("state", "extended", "spent", "held", "due_at", "dispatched_at", "closed_at"),
        ),
        JournalRequired("Reservation"),
        TenantWalls("ReservationHold"),
        AppendOnly("ReservationHold"),
        TenantWalls("LedgerEntry"),
        AppendOnly("LedgerEntry"),
        migrations.RunSQL(BALANCED, "DROP FUNCTION IF EXISTS usage_require_balance() CASCADE"),
        TenantWalls("UsageRecord"),
        AppendOnly("UsageRecord"),
        JournalRequired("UsageRecord"),
        TenantWalls("UsageSum", deletable=True),  # derived: after a torn restore it is added up anew
        MutableColumns("UsageSum", columns=SUMS),
    ]
