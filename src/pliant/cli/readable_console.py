"""The terminal as rich draws on it. Apart from `screen`, since rich takes its time to come."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pliant.cli.readable import readable


class ReadableConsole(Console):
    """A terminal; whatever is drawn on it, no text in it does more than to be read."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else readable(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)
