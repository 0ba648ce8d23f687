"""How a command with a condition ends where it came to no answer, as `git bisect run` wants it."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_CANNOT_TELL, BedplateError

if TYPE_CHECKING:
    from collections.abc import Iterator


class NothingTold(BedplateError):
    """A comparison with a condition that came to no answer, whatever the reason."""

    exit_code = EXIT_CANNOT_TELL
    code = "nothing-told"


@contextmanager
def bisectable() -> Iterator[None]:
    """NothingTold for every error, those of bedplate itself too: bisecting would take their codes for a bad commit."""
    try:
        yield
    except BedplateError as error:
        raise NothingTold(*error.reasons) from error
    except OSError as error:
        raise NothingTold(str(error)) from error
    except Exception as error:
        traceback.print_exc()
        raise NothingTold("bedplate itself failed; what it was is above") from error
