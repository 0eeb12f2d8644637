"""Reads of the policy."""

from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import QuerySet

from approvals.errors import PolicyMissing
from approvals.models import PolicyRevision
from approvals.policy import evaluation, floor
from approvals.policy.evaluation import PolicyVerdict
from approvals.selectors.views import PolicyView, policy_view
from approvals.states import ActionClass
from factory.kernel import reloading
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, NotFound
from projects import selectors as projects


def policy_revisions() -> QuerySet[PolicyRevision]:
    """Return every revision of the tenant in scope, newest first."""
    return PolicyRevision.objects.order_by("-number")


def current_policy(ctx: Context) -> PolicyView:
    """Return the revision in force. Raises `PolicyMissing` where none was published: that is never a yes."""
    row = policy_revisions().first()
    if row is None:
        raise PolicyMissing(
            "This tenant has no policy yet, so nothing can be asked for. Publish a policy revision first."
        )
    return policy_view(row)


def policy_revision(revision_id: UUID) -> PolicyView:
    """Return a revision that was pinned, by its id."""
    row = PolicyRevision.objects.filter(pk=revision_id).first()
    if row is None:
        raise NotFound(f"There is no policy revision {revision_id} here.")
    return policy_view(row)


def policy_named(revision: str) -> PolicyView:
    """Return a revision by its word, such as r1."""
    number = revision.removeprefix("r")
    known = number.isascii() and number.isdecimal() and len(number) < 9
    row = PolicyRevision.objects.filter(number=int(number)).first() if known else None
    if row is None:
        raise NotFound(f"There is no policy revision {revision} here.")
    return policy_view(row)


def revision_after(number: int) -> str:
    """Return the word of the revision that followed one; empty for the one in force."""
    row = PolicyRevision.objects.filter(number=number + 1).only("number").first()
    return row.revision if row else ""


def slugs_of_tenant() -> list[str]:
    """Return the environments that rules are about, in whatever project: revisions are compared over them."""
    return sorted({environment.slug for environment in projects.environments(None)})


def evaluate(
    policy: PolicyView, action_class: str, environment_slug: str | None, *, amount: Decimal | None = None
) -> PolicyVerdict:
    """Return what this revision answers about an action in an environment (None: in none).

    Of `spend`, `amount` is all that a run may cost; without one the answer is about more than the
    threshold. Raises `InvalidInput` for a class that does not exist: an unknown word never means allow.
    """
    return evaluation.evaluate(
        policy.document,
        known_class(action_class),
        environment_slug,
        amount=amount,
        longest_expiry=longest_expiry(),
    )


def evaluate_at_the_limit(policy: PolicyView, environment_slug: str | None) -> PolicyVerdict:
    """Return what this revision answers about more money for a run that has used all it may cost."""
    return evaluation.evaluate_at_the_limit(
        policy.document, environment_slug, longest_expiry=longest_expiry()
    )


def spend_threshold(policy: PolicyView) -> Decimal | None:
    """Return above how many USD a run is a person's decision before it begins; None where none ever is."""
    return evaluation.spend_threshold(policy.document)


def evaluate_unknown_usage(policy: PolicyView, environment_slug: str | None) -> PolicyVerdict:
    """Return what this revision answers about going on with usage of unknown cost: allowed where ignored."""
    return evaluation.evaluate_unknown_usage(
        policy.document, environment_slug, longest_expiry=longest_expiry()
    )


def unknown_hold() -> timedelta | None:
    """Return how long, by the revision in force, money is held for usage of unknown cost; None where only a
    person ends such a hold."""
    row = policy_revisions().first()
    days = row.document.get("spend", {}).get("unknownHoldDays") if row else None
    return None if days is None else timedelta(days=days)


def everybody_who_may(action_class: str) -> tuple[str, ...]:
    """Return the widest circle of roles that the platform lets decide about a class."""
    return floor.roles(known_class(action_class))


def known_class(word: str) -> ActionClass:
    """Return the action class of that name, or a refusal that lists those that there are."""
    try:
        return ActionClass(word)
    except ValueError as fault:
        known = ", ".join(ActionClass.values)
        errors = [FieldError("/actionClass", f"One of {known}.")]
        raise InvalidInput(f"There is no action class {word[:64]!r}.", errors=errors) from fault


def longest_expiry() -> timedelta:
    """Return how long a request may wait at most: the setting can only shorten the floor's."""
    hours = reloading.value("FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS")
    return min(floor.LONGEST_EXPIRY, timedelta(hours=hours))
