"""The console that commands print their tables with."""

from __future__ import annotations

from bedplate.executor.terminal_console import TerminalConsole


class PipedConsole(TerminalConsole):
    """A console whose reader may go away (`bedplate show | head`).

    Rich ends the program with status 1 then. Here the error goes up to `cli.main`, which takes a closed pipe
    for the reader's right and ends with 0.
    """

    def on_broken_pipe(self) -> None:
        """Hand the BrokenPipeError on that rich is handling when it calls this."""
        self.quiet = True
        raise BrokenPipeError
