"""From what a caller states to the messages of the contract: a text that cannot be sent is refused by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from durable_memory_client.values.enums import OpenEnum

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=OpenEnum)


def stated(message: Callable[P, T], *args: P.args, **fields: P.kwargs) -> T:
    """The message with these fields.

    Raises: ValueError, naming the field, for a text with a lone surrogate, which UTF-8 has no form for.
    """
    try:
        return message(*args, **fields)
    except UnicodeEncodeError as error:
        named = (name for name, value in fields.items() if _has(value, error.object))
        raise not_unicode(next(named, "text"), error) from None


def not_unicode(field: str, error: UnicodeEncodeError) -> ValueError:
    return ValueError(f"{field}: a lone surrogate at position {error.start} cannot be sent: it is half of a character")


def number_of(kind: type[E], value: E | str, argument: str) -> Any:
    """The number on the wire of a value that the caller gave as `argument`: a member of the enum, or its name.

    Raises: ValueError.
    """
    return kind.given(value, argument).wire


def optional_number(kind: type[E], value: E | str | None, argument: str) -> Any:
    """The same, and None where nothing was given."""
    return None if value is None else number_of(kind, value, argument)


def numbers_of(kind: type[E], values: Iterable[E | str], argument: str) -> list[Any]:
    """The same of several. Raises: TypeError for one text in place of a sequence."""
    if isinstance(values, str):
        raise TypeError(f"{argument} is a sequence of {kind.__name__}, not one of them")
    return [number_of(kind, value, argument) for value in values]


def _has(value: object, text: str) -> bool:
    match value:
        case str():
            return value == text
        case Mapping():
            return any(text in pair for pair in value.items())
        case list() | tuple():
            return text in value
    return False
