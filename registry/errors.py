"""What the registry refuses, each with a stable code."""

from factory.kernel.errors import Conflict, NotFound, Unprocessable


class ManifestRefused(Unprocessable):
    """The commit holds a manifest that is not acceptable; it never will be, so nothing is retried."""

    code = "manifest-refused"
    title = "The manifest is not acceptable"


class SourceRefused(Unprocessable):
    """The repository or the commit is of a kind that is never fetched."""

    code = "source-refused"
    title = "The source is not allowed"


class FetchFailed(Unprocessable):
    """The commit could not be fetched now; it may be later."""

    code = "fetch-failed"
    title = "The commit could not be fetched"
    retryable = True


class DependencyNotPublished(Unprocessable):
    """A dependency names no Published release, yet."""

    code = "dependency-not-published"
    title = "A dependency is not published"
    retryable = True


class ReleaseNotFound(NotFound):
    title = "There is no such release"


class VersionTaken(Conflict):
    code = "version-taken"
    title = "The version is taken"


class ReleaseAlreadySubmitted(Conflict):
    code = "release-already-submitted"
    title = "The candidate was already submitted"


class ReleaseNotInState(Conflict):
    code = "release-not-in-state"
    title = "The release is in another state"


class ClosureNotResolved(Conflict):
    code = "closure-not-resolved"
    title = "The closure is not resolved"


class EvaluationMissing(Conflict):
    code = "evaluation-missing"
    title = "There is no passing evaluation"


class EvaluationMismatch(Unprocessable):
    code = "evaluation-mismatch"
    title = "The evaluation is of something else"


class WorkflowTaken(Conflict):
    code = "workflow-taken"
    title = "The workflow belongs to another asset"


class ReleaseNotPublished(Unprocessable):
    code = "release-not-published"
    title = "The release is not published"


class ReleaseNotLoadable(Unprocessable):
    code = "release-not-loadable"
    title = "The release cannot be loaded"


class UnknownWorkflow(Unprocessable):
    code = "unknown-workflow"
    title = "The workflow is not known"


class UnknownAlias(Unprocessable):
    code = "unknown-alias"
    title = "The alias is not known"


class AliasInUse(Conflict):
    code = "alias-in-use"
    title = "An alias names the release"


class InFlightNotOffered(Unprocessable):
    code = "in-flight-not-offered"
    title = "This in-flight policy is not offered"
