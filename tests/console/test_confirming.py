"""What every page before an act has in common: what is wrong with what was sent, and where else to go."""

from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string

from factory.console.confirming import ChoiceField, Confirmation, told_of
from factory.kernel.errors import FieldError, InvalidInput

FIELDS = (ChoiceField("alias", "Alias"), ChoiceField("month", "Month"), ChoiceField("amount", "Amount"))


def shown(question: Confirmation, *pointers: str) -> str:
    refusal = InvalidInput(
        "It is wrong.", errors=[FieldError(pointer, "This is wrong.") for pointer in pointers]
    )
    return " ".join(render_to_string("factory/refusal.html", told_of(question, refusal)).split())


def test_the_fields_at_fault_are_named_as_a_list_is_read() -> None:
    question = Confirmation("Do it", "It is done.", "Do it", "/admin/", fields=FIELDS)
    link = '<a class="fc-link" href="#field-{}">{}</a>'
    alias, month, amount = (link.format(one.name, one.label) for one in FIELDS)
    assert f"Look below at {alias}.<" in shown(question, "/alias")
    assert f"Look below at {alias} and {amount}.<" in shown(question, "/alias", "/amount")
    assert f"Look below at {alias}, {month} and {amount}.<" in shown(question, "/alias", "/month", "/amount")


def test_no_field_cuts_off_what_is_pasted_into_it() -> None:
    """`maxlength` does, and says nothing: too long is refused with a number, and kept."""
    pages = list(Path(settings.BASE_DIR).glob("*/templates/**/*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if "maxlength" in page.read_text()] == []
