"""Whether an outcome is what a case expects, and where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

ANY: Final = "$any"
ABSENT: Final = "$absent"


def differences(expected: Any, actual: Any, where: str = "") -> list[str]:
    """Every difference, as `path: what`; none if it matches.

    An object matches one that has at least its members; a list one of equal length. `$any` matches whatever is
    there, `$absent` what is not, and everything else what is equal, `true` never being `1`.
    """
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            return [f"{where or 'outcome'}: expected an object, got {_short(actual)}"]
        found = []
        for key, value in expected.items():
            path = f"{where}.{key}" if where else key
            if value == ABSENT:
                if key in actual:
                    found.append(f"{path}: expected nothing, got {_short(actual[key])}")
            elif key not in actual:
                found.append(f"{path}: expected {_short(value)}, got nothing; there is {_short(actual)}")
            else:
                found += differences(value, actual[key], path)
        return found
    if expected == ANY:
        return []
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(actual, Sequence) or isinstance(actual, str) or len(actual) != len(expected):
            return [f"{where}: expected {len(expected)} items, got {_short(actual)}"]
        return [
            difference
            for place, (wanted, got) in enumerate(zip(expected, actual, strict=True))
            for difference in differences(wanted, got, f"{where}[{place}]")
        ]
    if isinstance(expected, str) and isinstance(actual, str) and expected != actual:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(expected, actual, strict=False))
        place = len(list(same))
        return [f"{where}: from character {place} on expected {_short(expected[place:])}, got {_short(actual[place:])}"]
    if expected != actual or isinstance(expected, bool) is not isinstance(actual, bool):
        return [f"{where}: expected {_short(expected)}, got {_short(actual)}"]
    return []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
