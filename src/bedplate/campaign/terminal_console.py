"""The console that tables and the live display are drawn on."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bedplate.campaign.terminal_edge import neutral, unguarded


class TerminalConsole(Console):
    """A console with colours of its own, on which no text is obeyed: no control character, no markup, no emoji code."""

    def __init__(self) -> None:
        super().__init__(file=unguarded(sys.stdout), highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does it, before anything is laid out; what rich itself says to the terminal stays."""
        for segment in super().render(renderable, options):
            text = segment.text
            shown = text if segment.control or text == "\n" else neutral(text)
            yield segment if shown is text else Segment(shown, segment.style)

    def on_broken_pipe(self) -> None:
        """Hand on the BrokenPipeError that rich is handling: `cli.main` ends with 0 where a reader went away.

        Rich would end the program with status 1 (`bedplate show | head`).
        """
        self.quiet = True
        raise BrokenPipeError
