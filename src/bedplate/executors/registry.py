"""The executors by their names in plans, each imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bedplate.plan.rules import LOCAL, QEMU, SLURM

if TYPE_CHECKING:
    from bedplate.executors.protocol import Executor


def executor_for(name: str) -> Executor:
    """The executor of that name."""
    return _EXECUTORS[name]()


def _local() -> Executor:
    from bedplate.executors.local import LocalExecutor  # noqa: PLC0415

    return LocalExecutor()


def _qemu() -> Executor:
    from bedplate.executors.qemu.executor import QemuExecutor  # noqa: PLC0415

    return QemuExecutor()


def _slurm() -> Executor:
    from bedplate.executors.slurm.fleet_run import SlurmExecutor  # noqa: PLC0415

    return SlurmExecutor()


_EXECUTORS: Mapping[str, Callable[[], Executor]] = {LOCAL: _local, QEMU: _qemu, SLURM: _slurm}
