"""What is asked of an engine whose calls are timed: the role `microbenchmark` of its folder.

The loops are drivers/microbenchmark; what an engine has of them in C stands in a folder beside them, which its driver is
compiled with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bedplate.model.levels import Levels
    from bedplate.visit.workload import Driver


class BenchEngine(Protocol):
    """The role itself. `drivers` is one: the loops with this engine; `library` is what its version stands under in a record.

    `files` are those of a database in its directory, which go before a new one is made.
    """

    drivers: tuple[Driver, ...]
    library: str
    files: tuple[str, ...]

    def opened(self, settings: Levels, dataset: Levels, *, synchronous: bool | None, fresh: bool) -> Levels:
        """What a test is told of the engine's settings, all of them, by the cell's and the dataset's.

        `synchronous` says what the test is called, None where it writes nothing; `fresh` whether it makes the database. What
        the driver's document says the engine answered must be the same.
        """
        ...

    def remedy(self, error: str) -> tuple[str, str] | None:
        """The code of a failure that the library says in these words, and what gives a way out; None of any other."""
        ...
