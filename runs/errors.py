"""What runs refuse, each a fact with a stable code."""

from factory.kernel.errors import Conflict, Forbidden, Gone, InvalidInput, NotFound, Unprocessable


class RunNotFound(NotFound):
    title = "There is no such run here"


class AttemptNotFound(NotFound):
    title = "There is no such attempt here"


class WorkerNotRegistered(NotFound):
    """The process has to register (again) before it polls."""

    code = "worker-not-registered"
    title = "The worker is not registered"


class WorkerNotFound(NotFound):
    title = "There is no such worker here"


class PoolShared(Forbidden):
    """One tenant does not shut out a worker that others work with."""

    code = "pool-shared"
    title = "The worker works for other tenants too"


class PoolUnknown(Forbidden):
    code = "pool-unknown"
    title = "There is no such pool"


class WorkerSuperseded(Conflict):
    """A younger process has this worker's name: the older one stops."""

    code = "worker-superseded"
    title = "Another process has registered under this name"


class StaleFencingToken(Conflict):
    """The lease is not current, or not the caller's: whatever it reports changes nothing."""

    code = "stale-fencing-token"
    title = "The lease is not the caller's any more"
    audited = True


class LeaseOver(Gone):
    """The caller's own lease has ended."""

    code = "lease-expired"
    title = "The lease has expired"
    audited = True


class AttemptSettled(Conflict):
    """An attempt has one outcome, and this is another."""

    code = "attempt-settled"
    title = "The attempt already has another outcome"
    audited = True


class OutcomeHashMismatch(Unprocessable):
    code = "outcome-hash-mismatch"
    title = "The hash is not that of the outcome"


class ProposalChanged(Unprocessable):
    code = "proposal-hash-mismatch"
    title = "The hash is not that of the proposal"


class PinsMismatch(Conflict):
    """The worker proposes for another release, snapshot or policy than the run's."""

    code = "pins-mismatch"
    title = "These are not the run's pins"


class ClassAboveStep(Forbidden):
    """The action reaches further than its step was declared to."""

    code = "class-above-step"
    title = "The action is above its step's class"
    audited = True


class RunNotWorking(Conflict):
    """The run is being cancelled or has ended: nothing new is begun for it."""

    code = "run-not-working"
    title = "The run does not go on"


class RunFrozen(Conflict):
    """The auditor found a violation about the run: it stands still until somebody looked at it."""

    code = "run-frozen"
    title = "The run is frozen"
    retryable = True  # events of the run wait until it is lifted; they are not to blame
    retry_seconds = 60.0


class NotFrozen(Conflict):
    code = "not-frozen"
    title = "The run is not frozen"


class RunEnded(Conflict):
    """A Completed or Failed run cannot be cancelled."""

    code = "run-ended"
    title = "The run has ended"


class ReleaseRevoked(Gone):
    code = "release-revoked"
    title = "The release cannot be loaded any more"


class ModelProfileNotApproved(Unprocessable):
    code = "model-profile-not-approved"
    title = "The model profile is not approved"


class EnvironmentUnknown(Unprocessable):
    code = "environment-unknown"
    title = "The environment is not one of the project"


class TemplateNotFound(NotFound):
    title = "There is no such run template here"


class TemplateUnknown(Unprocessable):
    code = "template-unknown"
    title = "There is no such run template"


class TemplateRetired(Unprocessable):
    """Refuse to begin what rests on a template that is retired."""

    code = "template-retired"
    title = "The run template is retired"


class TemplateFixesIt(Unprocessable):
    """A submission said otherwise about what its template fixes."""

    code = "template-fixes-it"
    title = "The run template fixes it otherwise"


class TemplateNameTaken(Conflict):
    code = "template-name-taken"
    title = "Another run template has this name"


class TemplateEnded(Conflict):
    code = "template-ended"
    title = "The run template is retired already"


class NothingToWaive(Unprocessable):
    """No step of the workflow is of the one class that can be approved in advance."""

    code = "nothing-to-waive"
    title = "Nothing of the workflow can be approved in advance"


class PreviousRunUnknown(Unprocessable):
    code = "previous-run-unknown"
    title = "There is no such previous run"


class PreviousRunOpen(Unprocessable):
    """Work that still goes on is not done again."""

    code = "previous-run-open"
    title = "The previous run is not over"


class NoSlot(Conflict):
    """The worker has no free slot, or is not to be given anything new."""

    code = "no-slot"
    title = "The worker has no free slot"


class QuotaReached(Conflict):
    """The tenant has as many attempts in workers' hands as it may have."""

    code = "quota-reached"
    title = "The tenant's quota is used up"


class QuotaOfPlatform(Forbidden):
    """A limit that the platform has put on a tenant is not the tenant's to lift."""

    code = "quota-of-platform"
    title = "The platform set this quota"


class WorkerElsewhere(Forbidden):
    """The worker works for other tenants too: who stops it decides about their work as well."""

    code = "worker-serves-others"
    title = "The worker serves other tenants too"


class NothingToDispatch(Conflict):
    """The step is not waiting any more: another worker was faster, or the run moved on."""

    code = "nothing-to-dispatch"
    title = "The step does not wait for a worker"


class NothingToSettle(Conflict):
    code = "nothing-to-settle"
    title = "The step has no uncertain attempt to settle"


class NothingToClose(Conflict):
    code = "nothing-to-close"
    title = "There is nothing here that an Operator was asked to look at"


class MalformedOutcome(InvalidInput):
    code = "malformed-outcome"
    title = "The outcome is not one that a worker may report"
