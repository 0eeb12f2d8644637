"""Expressions for rules in SQL that read what a row holds as JSON or text, whatever it holds.

A cast that raises would end the rule for every tenant. These are null, or empty, where the row holds
something else, so that the rule speaks about that row and goes on with the others.
"""

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_NUMBER = "^-?[0-9]{1,200}([.][0-9]{1,200})?$"


def is_uuid(text: str) -> str:
    """Return the expression that tells whether a text is a UUID; null where there is no text."""
    return f"({text}) ~ '{_UUID}'"


def uuid_of(text: str) -> str:
    """Return the expression that reads a text as a UUID."""
    return f"(CASE WHEN {is_uuid(text)} THEN ({text})::uuid END)"


def number_of(text: str) -> str:
    """Return the expression that reads a text as a number."""
    return f"(CASE WHEN ({text}) ~ '{_NUMBER}' THEN ({text})::numeric END)"


def summand_of(text: str) -> str:
    """Return the expression that reads a text as a number to be summed: any other text makes the sum NaN."""
    return f"(CASE WHEN ({text}) IS NOT NULL THEN coalesce({number_of(text)}, 'NaN') END)"


def array_of(value: str) -> str:
    """Return the expression that reads a JSON value as an array."""
    return f"(CASE jsonb_typeof({value}) WHEN 'array' THEN {value} ELSE '[]' END)"


def object_of(value: str) -> str:
    """Return the expression that reads a JSON value as an object."""
    return f"(CASE jsonb_typeof({value}) WHEN 'object' THEN {value} ELSE '{{}}' END)"
