"""Groups of options: what several commands take is declared once, and reaches each as one parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints


class OptionGroup:
    """Base of dataclasses whose fields are annotated as typer's options, and have defaults."""

    __slots__ = ()


class Parameters:
    """The parameters of a function as typer should see them, and the way back to the function's own.

    A parameter of the function that is annotated with an `OptionGroup` stands for the fields of the group.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._groups: dict[str, type[Any]] = {}
        positional: list[inspect.Parameter] = []
        named: list[inspect.Parameter] = []
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            annotation = parameter.annotation
            if isinstance(annotation, type) and issubclass(annotation, OptionGroup):
                self._groups[parameter.name] = annotation
                named += _options(annotation)
            else:
                (named if parameter.kind is inspect.Parameter.KEYWORD_ONLY else positional).append(parameter)
        self.signature = inspect.Signature([*positional, *named])

    def collected(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's own arguments, for the values that typer has found."""
        rest = dict(arguments)
        groups = {
            name: group(**{field.name: rest.pop(field.name) for field in fields(group)})
            for name, group in self._groups.items()
        }
        return {**rest, **groups}


def _options(group: type[Any]) -> list[inspect.Parameter]:
    annotations = get_type_hints(group, include_extras=True)
    options = []
    for field in fields(group):
        assert field.default is not MISSING, f"{group.__name__}.{field.name} needs a default"
        options.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=annotations[field.name],
            )
        )
    return options
