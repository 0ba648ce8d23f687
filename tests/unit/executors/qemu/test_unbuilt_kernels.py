"""A kernel that cannot be built: its visits do not run and stay due, those of other kernels run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.executors.qemu import executor
from bedplate.executors.qemu.executor import PreparedGuests, QemuExecutor

if TYPE_CHECKING:
    from bedplate.executors.protocol import Start


class Begun:
    """A start of which is kept what was taken out of it."""

    def __init__(self, cells: dict[str, str]) -> None:
        kernels = {cell: SimpleNamespace(release=kernel) for cell, kernel in cells.items()}
        planned = [
            SimpleNamespace(cell=SimpleNamespace(id=cell, kernel=kernel, filesystem=None))
            for cell, kernel in kernels.items()
        ]
        self.expansion = SimpleNamespace(planned=planned)
        self.plan = SimpleNamespace(
            guest=SimpleNamespace(memory_bytes=2**30), journal_device_for=lambda _: None
        )
        self.store = SimpleNamespace(scratch_directory=None)
        self.listener = None
        self.left_out: list[tuple[set[str], str, tuple[str, ...]]] = []

    def without(self, cells: set[str], subject: str, reasons: tuple[str, ...]) -> Begun:
        self.left_out.append((cells, subject, reasons))
        return self

    def one_by_one(self, runner: object) -> list[tuple[set[str], str, tuple[str, ...]]]:
        return self.left_out


def test_only_cells_of_a_kernel_that_cannot_be_built_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"0123456789ab a subject": ("make ended with status 2", "error: x")}
    monkeypatch.setattr(executor, "prepare_guests", lambda *_: PreparedGuests((), failed))
    start = Begun({"a": "6.12", "b": "0123456789ab a subject"})
    left: Any = QemuExecutor().run(cast("Start", start))
    assert [({"b"}, "kernel 0123456789ab a subject", ("make ended with status 2", "error: x"))] == left
