"""The places of a project that runs may target."""

from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.recording import audit, save
from projects.commands.inputs import label_faults, refuse, slug_faults
from projects.commands.reach import lock_own_project
from projects.errors import EnvironmentExists
from projects.models import Environment


@command("AddEnvironment")
def add_environment(ctx: Context, *, project_id: UUID, slug: str, name: str = "") -> str:
    """Add an environment to a project. Answers with its id.

    Guards: an admin of the project. Emits: nothing. Errors: `NotFound`, `InvalidInput`,
    `EnvironmentExists`.
    """
    refuse([*slug_faults(slug, "/slug"), *label_faults(name, "/name")], "The environment is not valid.")
    project = lock_own_project(ctx, project_id)
    if Environment.objects.filter(project_id=project.id, slug=slug).exists():
        raise EnvironmentExists(
            f"There is an environment {slug} already.", errors=[FieldError("/slug", "It is taken.")]
        )
    row = Environment(
        tenant_id=ctx.tenant_id,
        project_id=project.id,
        slug=slug,
        name=name.strip() or slug,
        created_at=now(),
    )
    save(row)
    audit(ctx, "AddEnvironment", subject=f"environment:{row.id}", stream=project.id)
    return str(row.id)
