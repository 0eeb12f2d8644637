"""What every table of a tenant is built on."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.db import models

from factory.kernel.errors import Busy
from factory.kernel.ids import uuid7
from factory.kernel.lifecycle import CREATION, Lifecycle
from factory.kernel.tenancy import active

M = TypeVar("M", bound=models.Model)


class TenantManager(models.Manager[M]):
    """Fails closed: outside a tenant's scope it raises, inside it sees that tenant alone."""

    def get_queryset(self) -> models.QuerySet[M]:
        return super().get_queryset().filter(tenant_id=active().tenant_id)


class TenantModel(models.Model):
    """A row that belongs to one tenant. Its wall in the database is `TenantWalls`."""

    tenant_id = models.CharField(max_length=64, editable=False)

    objects: ClassVar[TenantManager[Any]] = TenantManager()

    class Meta:
        abstract = True

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> Self:
        instance = super().from_db(db, field_names, values, **options)
        instance.remember()
        return instance

    def refresh_from_db(
        self, using: str | None = None, fields: Any = None, from_queryset: Any = None
    ) -> None:
        """Also called by Django for a deferred column: what was just read is no change."""
        wanted = None if fields is None else set(fields)  # Django empties the list that it is given
        super().refresh_from_db(using, fields, from_queryset)
        read = [f for f in self._meta.concrete_fields if wanted is None or {f.name, f.attname} & wanted]
        self._held = getattr(self, "_held", {}) | self._present([f.attname for f in read])

    def remember(self) -> None:
        """Take the present values as those that the database holds."""
        self._held = self._present([f.attname for f in self._meta.concrete_fields])

    def _present(self, attnames: Collection[str]) -> dict[str, Any]:
        now = self.__dict__
        return {
            name: copy.deepcopy(now[name]) if isinstance(now[name], dict | list) else now[name]
            for name in attnames
            if name in now
        }

    def changed_fields(self) -> list[str]:
        """The columns whose values differ from what the database holds."""
        held: dict[str, Any] = getattr(self, "_held", {})
        return [
            f.attname
            for f in self._meta.concrete_fields
            if f.attname in self.__dict__
            and (f.attname not in held or held[f.attname] != self.__dict__[f.attname])
        ]


_Set = TypeVar("_Set")
_Get = TypeVar("_Get")


class TenantForeignKey(models.ForeignKey[_Set, _Get]):
    """A reference within one tenant.

    PostgreSQL does not apply row-level security to references, so the constraint carries the tenant:
    `TenantWalls` makes it `(tenant_id, x_id)`. Nothing is ever deleted along it. It has no index of itself:
    every index is paid for by every write, so a model names those that a question asks.
    """

    def __init__(self, to: Any, on_delete: Any = models.PROTECT, **options: Any) -> None:
        options["db_constraint"] = False
        options.setdefault("db_index", False)
        super().__init__(to, on_delete, **options)


@dataclass(frozen=True, slots=True)
class Refs:
    """Hold what an event is about, for its envelope."""

    project_id: UUID | None = None
    run_id: UUID | None = None
    step_id: UUID | None = None
    attempt_id: UUID | None = None


class Journaled(TenantModel):
    """An entity whose every transition is one entry of a hash chain.

    Subclasses declare `state` as a protected FSM field and `lifecycle`; `version`, if there is
    one, rises by one with each command that records a change.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    lifecycle: ClassVar[Lifecycle]
    if TYPE_CHECKING:
        state: Any

    class Meta:
        abstract = True

    @property
    def stream(self) -> UUID:
        """The chain that its entries stand in, which is also the order of its events."""
        return self.id

    @property
    def journal_snapshot(self) -> Mapping[str, Any]:
        """Ids, codes and times that go with the state: its entries keep them, for a row that is restored."""
        return {}

    @property
    def refs(self) -> Refs:
        """The envelope's references, by the attributes of the same names."""
        names = ("project_id", "run_id", "step_id", "attempt_id")
        return Refs(**{name: getattr(self, name, None) for name in names})

    @property
    def recorded_state(self) -> str:
        """The state that the journal last saw."""
        held: dict[str, Any] = getattr(self, "_held", {})
        return CREATION if self._state.adding else str(held["state"])

    def _do_update(self, base_qs: Any, *args: Any, **kwargs: Any) -> bool:  # type: ignore[override]  # a later Django's
        """Django's one UPDATE, over the state and the version that were read and over no others.

        Whoever locked the row first sees no difference. Whoever did not, and was overtaken, would undo
        what the other did: it is refused, and may be tried again with what is there now.
        """
        held: dict[str, Any] = getattr(self, "_held", {})
        read = {name: held[name] for name in ("state", "version") if name in held}
        if not super()._do_update(base_qs.filter(**read), *args, **kwargs):
            raise Busy(f"This {self._meta.verbose_name} changed while it was looked at; try again.")
        return True


def uuid_key() -> "models.UUIDField[UUID, UUID]":
    """A time-ordered primary key."""
    return models.UUIDField(primary_key=True, default=uuid7, editable=False)


def in_check(field: str, values: Sequence[str]) -> models.Q:
    """A CHECK that a column holds one of these words."""
    return models.Q(**{f"{field}__in": sorted(values)})
