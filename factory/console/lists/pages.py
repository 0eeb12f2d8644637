"""A list that reads one page of rows and the one behind it, however many there are."""

from datetime import datetime
from typing import Any, cast

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

from factory.console.asking import FORMAT, not_understood, wants_file
from factory.console.lists.bounded_scan import BoundedScan
from factory.console.lists.filters import choices_of
from factory.kernel.keyset import place_of, values_of

AFTER, BEFORE, ORDER, LOOK = "after", "before", "order", "look"
OWN = (AFTER, BEFORE, ORDER, LOOK, FORMAT)
OF_A_PAGE = (AFTER, BEFORE, LOOK, FORMAT)
"""What another filter, view or order of the list begins without."""
OLDEST = "oldest"
FURTHER, ON = "further", "on"
"""Somebody has asked to look further: from where nothing has been found yet, or something has."""
LOOKS = (FURTHER, ON)
BETWEEN = "~"
PATIENCE = 2.0
"""Seconds that somebody waits who has asked for a further look: some hundred thousand rows."""


class BaseList(ChangeList):
    """The rows after a place, or before it. Nothing is counted, and no row is read to be passed over.

    `next_url` and `previous_url` are links that lead to the same rows whenever they are opened, and are
    empty at the ends. The order is the one that an index has, in either direction. Where only so many rows
    were looked through for those that were asked for, `looked_through` says how many, `looked_to` when the
    last of them was, if their order is one of time, and `further_url` goes on behind it.
    """

    next_url = previous_url = further_url = ""
    looked_through = 0
    looked_to: datetime | None = None

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in OWN}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Another filter begins at the first page again."""
        return str(super().get_query_string(new_params, [*(remove or ()), *OF_A_PAGE]))

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        self.walked = self.walked_in(request)
        return cast("QuerySet[Any]", super().get_queryset(request, *args, **kwargs))

    def walked_in(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows among which those of the list are found one by one: all that the place has."""
        return cast("QuerySet[Any]", self.root_queryset)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        names = [*self.model_admin.get_ordering(request)]
        return [_turned(name) for name in names] if self.oldest_first else names

    @property
    def oldest_first(self) -> bool:
        return bool(self.params.get(ORDER) == OLDEST)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(name.lstrip("-") for name in self.model_admin.ordering)

    def get_results(self, request: HttpRequest) -> None:
        self._say_what_is_no_value(request)
        back = BEFORE in self.params
        place = self.params.get(BEFORE) if back else self.params.get(AFTER)
        at = self.values(place)
        if wants_file(request):
            return  # it looks for all of its rows by itself
        found = self._looked_for(at, back=back)
        more, found = len(found) > self.list_per_page, found[: self.list_per_page]
        if back:
            found.reverse()
        self.carry(request, found)
        self.result_list = found
        self.result_count = self.full_result_count = len(found)
        self.show_full_result_count = self.can_show_all = False
        self.multi_page = more or place is not None
        if found:
            before = place and self.params.get(LOOK) != FURTHER
            self.previous_url = self._link(BEFORE, found[0]) if (more if back else before) else ""
            self.next_url = self._link(AFTER, found[-1]) if (place if back else more) else ""

    def _say_what_is_no_value(self, request: HttpRequest) -> None:
        """A filter by a column takes any value; one that nobody is offered is a slip, and found nowhere."""
        for spec in self.filter_specs:
            name = getattr(spec, "lookup_kwarg", "")
            sent = request.GET.get(name, "") if name else ""
            if sent and sent not in {value for value, _, _ in choices_of(self, spec)[1]}:
                told = f"“{sent[:60]}” is no {spec.title} here."
                not_understood(request, told, "So nothing is shown.")

    def _looked_for(self, place: list[Any] | None, *, back: bool) -> list[Any]:
        """A page of rows and the one behind it; how far it was looked for them is kept."""
        look = self.look(back=back)
        looks = self.params.get(LOOK)
        patience = PATIENCE if looks in LOOKS else 0.0
        rows, last = look.page(place, self.list_per_page + 1, patience=patience)
        if last is not None:
            first_of_key = getattr(last, self.key[0])
            self.looked_through = look.through
            self.looked_to = first_of_key if isinstance(first_of_key, datetime) else None
            nothing_yet = not rows and (looks == FURTHER if looks else not place)
            way = {BEFORE if back else AFTER: self.place(last), LOOK: FURTHER if nothing_yet else ON}
            self.further_url = str(super().get_query_string(way, [AFTER, BEFORE, FORMAT]))
        return rows

    def look(self, *, back: bool = False) -> BoundedScan:
        """A look for the list's rows in its order, or in the opposite."""
        narrowed = cast("QuerySet[Any]", self.queryset)
        every = self.walked.order_by(*narrowed.query.order_by)
        ascending = self.model_admin.ordering[0].startswith("-") == self.oldest_first
        if back:
            return BoundedScan(every.reverse(), narrowed.reverse(), self.key, not ascending)
        return BoundedScan(every, narrowed, self.key, ascending)

    def values(self, place: str | None) -> list[Any] | None:
        """A place in the list, as the values of its key. Raises `IncorrectLookupParameters`."""
        if place is None:
            return None
        try:
            return values_of(self.model, self.key, place.split(BETWEEN))
        except ValueError as fault:
            raise IncorrectLookupParameters(f"“{place[:60]}” is no place in this list.") from fault

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        """Put on a page of rows what its columns need besides, with one query for all of them."""

    def place(self, row: Model) -> str:
        return BETWEEN.join(place_of(row, self.key))

    def _link(self, name: str, row: Model) -> str:
        looks = {LOOK: ON} if self.params.get(LOOK) in LOOKS else {}
        return str(super().get_query_string({name: self.place(row), **looks}, [AFTER, BEFORE, FORMAT]))

    @property
    def found_nothing_before(self) -> bool:
        """Tell whether it was looked as far as here, and nothing was found on the way."""
        return bool(self.params.get(LOOK) == FURTHER)

    @property
    def went_through(self) -> bool:
        """Tell whether rows were looked through one by one on the way here, so that this is an end of the
        list."""
        return bool(self.params.get(LOOK) in LOOKS)

    @property
    def goes_back(self) -> bool:
        return BEFORE in self.params

    @property
    def first_url(self) -> str:
        return self.get_query_string()

    @property
    def turned_url(self) -> str:
        return self.get_query_string({ORDER: None if self.oldest_first else OLDEST})

    @property
    def file_url(self) -> str:
        return str(super().get_query_string({FORMAT: "csv"}, [AFTER, BEFORE, LOOK]))

    @property
    def is_narrowed(self) -> bool:
        """Tell whether fewer rows are shown than there are."""
        return bool(self.query or self.chosen)

    @property
    def chosen(self) -> dict[str, list[str]]:
        """Return what was chosen among the filters."""
        found = self.get_filters_params()
        return {name: values for name, values in found.items() if name != SEARCH_VAR}


def _turned(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"
