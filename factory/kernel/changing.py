"""ChangeSetting: a reloadable setting is overridden by a row, or given back to its variable."""

import getpass

from factory.kernel import reloading
from factory.kernel.clock import now
from factory.kernel.commanding import after_commit, command
from factory.kernel.context import PLATFORM, Context
from factory.kernel.errors import FieldError, Forbidden, InvalidInput
from factory.kernel.models import Setting
from factory.kernel.reasons import reason_faults
from factory.kernel.recording import audit


@command("ChangeSetting", audited=False)
def change_setting(ctx: Context, *, name: str, value: int | None, reason: str) -> None:
    """Let `value` hold from now on for the whole platform; None gives the variable its say again.

    Guards: whoever runs the platform, on its host, and nobody of any tenant; a reloadable setting; within
    its bounds; a reason. What was decided under the old value stays as it is: a lease keeps its end until
    it is renewed, a step its attempts. Audited in the platform's own chain, with the value before and after.
    Errors: `Forbidden`, `InvalidInput`.
    """
    if ctx.tenant_id != PLATFORM:
        raise Forbidden("Settings belong to no tenant: they are changed on the platform's host.")
    _check(name, value, reason)
    row = Setting.objects.select_for_update(no_key=True).filter(pk=name).first()
    before = None if row is None else row.value
    if value is None:
        Setting.objects.filter(pk=name).delete()
    else:
        facts = {"value": value, "reason": reason.strip(), "changed_by": ctx.actor.subject}
        Setting.objects.update_or_create(name=name, defaults={**facts, "changed_at": now()})
    audit(
        ctx,
        "ChangeSetting",
        subject=f"setting:{name}",
        reason=reason.strip(),
        detail={"before": before, "after": value, "account": _account()},
    )
    after_commit(reloading.forget)


def _account() -> str:
    """Return the account of the host's system that acts, if it has a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def _check(name: str, value: int | None, reason: str) -> None:
    faults = []
    within = reloading.bounds(name)
    if within is None:
        faults.append(FieldError("/name", "Not a setting that changes without a restart."))
    elif value is not None and not within[0] <= value <= within[1]:
        faults.append(FieldError("/value", f"A whole number from {within[0]} to {within[1]}."))
    faults += reason_faults(reason)
    if faults:
        raise InvalidInput("The setting cannot be changed so.", errors=faults)
