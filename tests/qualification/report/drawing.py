"""Pieces of SVG: text, bars, lines and axes, with titles that show what the pointer is on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from tests.qualification.report.bins import Window

WIDTH: Final = 1300
LEFT: Final = 300
RIGHT: Final = 120
"""Room for the names of lines at their ends."""
PLOT: Final = WIDTH - LEFT - RIGHT
CHARACTER: Final = 6.2
"""How wide a character of a label is at most, about."""
_USUAL: Final = 5.6
"""How wide it is on the average of a long name."""
_NARROWEST: Final = 1.35
"""How many characters may stand where one would."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Along:
    """Where a time lies from left to right."""

    window: Window

    def x(self, at: float) -> float:
        share = (at - self.window.began) / self.window.seconds
        return LEFT + PLOT * min(1.0, max(0.0, share))

    def shows(self, began: float, ended: float) -> bool:
        return began <= self.window.ended and ended >= self.window.began


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, said: str, *, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{number(x)}" y="{number(y)}"{named}{at}>{escape(said)}</text>'


def fitted(x: float, y: float, said: str, room: float, *, kind: str = "", anchor: str = "start") -> str:
    """Text that is made narrower if it takes more room: on paper nobody can ask for what was cut off.

    Only one that would get too narrow loses its end; its title has all of it.
    """
    fits = int(room / _USUAL)
    if len(said) <= fits:
        return text(x, y, said, kind=kind, anchor=anchor)
    most = int(fits * _NARROWEST)
    shown = said if len(said) <= most else said[: most - 1] + "…"
    drawn = text(x, y, shown, kind=kind, anchor=anchor)
    squeezed = drawn.replace(">", f' textLength="{number(room)}" lengthAdjust="spacingAndGlyphs">', 1)
    return squeezed if shown == said else squeezed.replace("</text>", f"<title>{escape(said)}</title></text>")


def name_of_line(y: float, said: str) -> str:
    """To the left of a lane."""
    return fitted(LEFT - 8, y, said, LEFT - 12, anchor="end")


def bar(x: float, y: float, width: float, height: float, *, kind: str, title: str = "") -> str:
    shape = (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 1.2))}" height="{number(height)}" '
        f'class="{kind}"'
    )
    return f"{shape}/>" if not title else f"{shape}><title>{escape(title)}</title></rect>"


def cross(x: float, y: float, *, title: str) -> str:
    """Something that takes no time."""
    arms = f"M{number(x - 4)} {number(y - 4)}l8 8m0 -8l-8 8"
    return f'<path d="{arms}" class="mark"><title>{escape(title)}</title></path>'


def tick(x: float, y: float, *, title: str) -> str:
    """Something that began, and took no time."""
    return f'<path d="M{number(x)} {number(y - 6)}v12" class="tick"><title>{escape(title)}</title></path>'


def path(points: Iterable[Point], *, kind: str, title: str = "", stepped: bool = False) -> str:
    """A line; one with steps holds each value until the next. A point that is not finite breaks it."""
    said = []
    height: float | None = None
    for x, y in points:
        if not math.isfinite(y):
            height = None
            continue
        if height is None:
            said.append(f"M{number(x)} {number(y)}")
        elif stepped:
            said.append(f"H{number(x)}" + (f"V{number(y)}" if number(y) != number(height) else ""))
        else:
            said.append(f"L{number(x)} {number(y)}")
        height = y
    if not said:
        return ""
    shape = f'<path d="{"".join(said)}" class="line {kind}"'
    return f"{shape}/>" if not title else f"{shape}><title>{escape(title)}</title></path>"


def rule(y: float, *, kind: str = "grid") -> str:
    return f'<path d="M{LEFT} {number(y)}h{PLOT}" class="{kind}"/>'


def clock(seconds: float) -> str:
    """Minutes and seconds since the run began; hours too once there are any."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def ticks(window: Window, origin: float) -> Sequence[tuple[float, str]]:
    """Round times of the run within the window, eight to sixteen of them, and what they are called."""
    choices = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
    step = next((one for one in choices if window.seconds / one <= 16), choices[-1])
    first = math.ceil((window.began - origin) / step)
    last = math.floor((window.ended - origin) / step)
    return [(origin + place * step, clock(place * step)) for place in range(first, last + 1)]


def nice_ceiling(value: float) -> float:
    """The next 1, 2 or 5 of any power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(one * power for one in (1.0, 2.0, 5.0, 10.0) if value <= one * power * (1 + 1e-9))


def short(value: float) -> str:
    """A figure for an axis."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """For people: milliseconds below a second."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 0.01:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def figure(height: float, parts: Iterable[str], *, label: str) -> str:
    """The whole picture, that scales with the page; `label` says what it shows to who does not see it."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {number(height)}" role="img" aria-label="{escape(label, quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )
