"""An executor carries one visit to wherever it is lived, and brings its directory back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.model.levels import Scalar
    from bedplate.model.visit import VisitRequest


class Executor(Protocol):
    """`name` stands in every record."""

    name: str

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,
    ) -> None:
        """Live through one visit; afterwards `directory` holds its record.

        Visits of one `boot` share a guest where the executor has guests; None shares nothing.
        BedplateError if there is no record although nobody asked the visit to end. A
        KeyboardInterrupt ends the visit first, waits until it has given everything back, and goes on.
        """
        ...

    def close(self) -> None:
        """Give back what outlives a visit (a guest that waits for the next one); safe to repeat."""
        ...
