"""What charts are drawn on: points, lines, areas and texts, 1200 by 700, drawn twice as large and made smaller."""

from collections.abc import Sequence
from typing import Final

from PIL import Image, ImageDraw, ImageFont

WIDTH: Final = 1200
HEIGHT: Final = 700
_FINER: Final = 2

INK: Final = "#1f2933"
FAINT: Final = "#66737f"
GRID: Final = "#e3e7eb"
BLUE: Final = "#0072b2"
ORANGE: Final = "#e69f00"
RED: Final = "#c8451b"
GREY: Final = "#b3bcc5"
PINK: Final = "#d9a5c4"
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7fc7", "#b7a60a")
"""That people who take red for green tell apart, too (Okabe and Ito 2008)."""

Point = tuple[float, float]


class Canvas:
    """A white image; places are in its own pixels, from the left and from above."""

    def __init__(self) -> None:
        self._image = Image.new("RGB", (WIDTH * _FINER, HEIGHT * _FINER), "white")
        self._draw = ImageDraw.Draw(self._image)

    def png(self) -> Image.Image:
        """Return the image in its size."""
        return self._image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)

    def line(self, points: Sequence[Point], colour: str, width: float = 1.0) -> None:
        """Draw a line through points."""
        if len(points) > 1:
            self._draw.line([_fine(point) for point in points], colour, round(width * _FINER), joint="curve")

    def dot(self, at: Point, colour: str, radius: float = 4.0) -> None:
        """Draw a dot."""
        x, y = _fine(at)
        size = radius * _FINER
        self._draw.ellipse((x - size, y - size, x + size, y + size), colour, outline="white", width=1)

    def cross(self, at: Point, colour: str, size: float = 4.0) -> None:
        """Draw a cross."""
        x, y = at
        self.line([(x - size, y - size), (x + size, y + size)], colour, 1.5)
        self.line([(x - size, y + size), (x + size, y - size)], colour, 1.5)

    def box(self, low: Point, high: Point, colour: str) -> None:
        """Fill a rectangle between its upper left and its lower right corner."""
        (left, top), (right, bottom) = _fine(low), _fine(high)
        if right >= left and bottom >= top:
            self._draw.rectangle((left, top, right, bottom), colour)

    def text(self, at: Point, text: str, *, size: int = 15, anchor: str = "lm", colour: str = INK) -> None:
        """Write a text; the anchor is Pillow's: `l`, `m` or `r`, and `t`, `m` or `b`."""
        self._draw.text(_fine(at), text, colour, _font(size), anchor)

    def label(self, at: Point, text: str, *, size: int = 13) -> None:
        """Write a text that ends there, so that it can be read over lines."""
        self._draw.text(_fine(at), text, INK, _font(size), "rm", stroke_width=3 * _FINER, stroke_fill="white")

    def aside(self, at: Point, text: str, *, size: int = 15, colour: str = INK) -> None:
        """Write a text from below to above, with its middle there."""
        font = _font(size)
        left, top, right, bottom = (round(one) for one in font.getbbox(text))
        strip = Image.new("RGB", (right - left + 8, bottom - top + 8), "white")
        ImageDraw.Draw(strip).text((4 - left, 4 - top), text, colour, font)
        turned = strip.rotate(90, expand=True)
        x, y = _fine(at)
        self._image.paste(turned, (round(x - turned.width / 2), round(y - turned.height / 2)))


def width_of(text: str, size: int = 15) -> float:
    """Return how wide a text is."""
    return _font(size).getlength(text) / _FINER


def fitting(text: str, width: float, size: int = 15) -> str:
    """Return a text, cut where it would be wider."""
    if width_of(text, size) <= width:
        return text
    kept = text
    while kept and width_of(f"{kept}…", size) > width:
        kept = kept[:-1]
    return f"{kept}…"


def mixed(low: str, high: str, part: float) -> str:
    """Return a colour between two."""
    pairs = zip(_channels(low), _channels(high), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def _fine(point: Point) -> Point:
    return point[0] * _FINER, point[1] * _FINER


def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size * _FINER)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow has a font of its own"
    return font
