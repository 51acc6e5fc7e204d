"""The frame of a chart: its title, its axes with what is written beside them, and its legend."""

from collections.abc import Sequence
from typing import Final

from pliant.cli.searches.report.axis import Axis, short
from pliant.cli.searches.report.canvas import FAINT, GRID, HEIGHT, INK, WIDTH, Canvas, Point, fitting, width_of

LEFT: Final = 110.0
RIGHT: Final = WIDTH - 40.0
TOP: Final = 100.0
BOTTOM: Final = HEIGHT - 80.0


class ChartFrame:
    """A canvas with two axes."""

    def __init__(self, title: str, x: Axis, y: Axis, labels: tuple[str, str], *, whole_x: bool = False) -> None:
        """Draw the axes, named for left to right and for below to above.

        Args:
            title: what is shown.
            x: from left to right.
            y: from below to above.
            labels: of both.
            whole_x: there are only 0, 1, 2, … from left to right.
        """
        self.canvas = Canvas()
        self.x, self.y = x, y
        write_title(self.canvas, title)
        for value in y.ticks():
            height = self.at(x.low, value)[1]
            self.canvas.line([(LEFT, height), (RIGHT, height)], GRID)
            self.canvas.text((LEFT - 10, height), short(value), anchor="rm", colour=FAINT)
        for value in x.ticks(10):
            if whole_x and (value != int(value) or value < 0):
                continue
            place = self.at(value, y.low)[0]
            self.canvas.line([(place, BOTTOM), (place, BOTTOM + 6)], FAINT)
            self.canvas.text((place, BOTTOM + 12), short(value), anchor="mt", colour=FAINT)
        self.canvas.line([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], FAINT)
        self.canvas.text(((LEFT + RIGHT) / 2, HEIGHT - 30), fitting(labels[0], RIGHT - LEFT), anchor="mm")
        self.canvas.aside((30, (TOP + BOTTOM) / 2), fitting(labels[1], BOTTOM - TOP - 20))

    def at(self, x: float, y: float) -> Point:
        """Return where a point lies on the canvas."""
        return LEFT + self.x.place(x) * (RIGHT - LEFT), BOTTOM - self.y.place(y) * (BOTTOM - TOP)


def write_title(canvas: Canvas, title: str) -> None:
    """Write what a chart shows."""
    canvas.text((40, 34), fitting(title, WIDTH - 80, 22), size=22, colour=INK)


def write_legend(canvas: Canvas, entries: Sequence[tuple[str, str]]) -> None:
    """Write what colours mean, in a line below the title; what has no room there is left out."""
    place = 40.0
    for colour, text in entries:
        width = width_of(text) + 48
        if place + width > WIDTH - 20:
            return
        canvas.box((place, 64), (place + 14, 78), colour)
        canvas.text((place + 20, 71), text, colour=FAINT)
        place += width


def say_nothing(title: str, reason: str) -> Canvas:
    """Return a chart that says why it shows nothing."""
    canvas = Canvas()
    write_title(canvas, title)
    canvas.text((WIDTH / 2, HEIGHT / 2), fitting(reason, WIDTH - 80, 18), size=18, anchor="mm", colour=FAINT)
    return canvas
