"""The programs that look at the image of a cut: the mounts, the checks, the repairs, the reader of LMDB.

One that is ended by SIGKILL has found nothing. As a status like others it would be a mount that fails, a check that is not
clean, or a reader that met damage, and the image would be blamed for the memory that ran out.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from bedplate.errors import CommandFailed, KilledFromOutside
from bedplate.host.command import Commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.host.command import Completed


class CutCommands(Commands):
    """Commands of which none may be killed but by its own time limit; KilledFromOutside for any other."""

    def run(self, argv: Sequence[str], **how: Any) -> Completed:
        """As `Commands.run`."""
        try:
            done = super().run(argv, **how)
        except CommandFailed as error:
            if error.status == -signal.SIGKILL:
                raise KilledFromOutside(argv[0]) from error
            raise
        if done.status == -signal.SIGKILL:
            raise KilledFromOutside(argv[0])
        return done
