"""What power cuts and disks that fail have in common as workloads: a recorded disk of their own, and how a run ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, VisitFailed
from bedplate.host.native_driver import LIBFUSE3
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.requirement import Need
from bedplate.model.reason import reasons_of
from bedplate.visit.recording import Recording
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.visit import RunRecord
    from bedplate.visit.workload import VisitContext


class OwnDiskWorkload:
    """A workload on the recorder's disk. A verdict is made from its files on the host, and not in the visit."""

    needs: tuple[Need, ...] = (
        Need("unshare", "util-linux", "gives what looks at a recorded disk its own mounts"),
        Need("setpriv", "util-linux", "ends what looks at a recorded disk with its visit"),
    )
    drivers: tuple[Driver, ...] = (Driver(RECORDER, (LIBFUSE3,)),)

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Nothing: each recording has an engine of its own, whose loading belongs to it."""

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """One run. What fails in it is its reason, and an interruption ends the visit."""
        recording = Recording(spec, context, directory)
        try:
            self.make(recording)
        except VisitFailed:
            raise
        except BedplateError as error:
            interruption = interruption_behind(error)
            if interruption is not None:
                raise interruption from error
            recording.reasons.extend(reasons_of(error))
        return recording.record()

    def make(self, recording: Recording) -> None:
        """Makes what the run is of."""
        raise NotImplementedError


def interruption_behind(error: BaseException) -> BaseException | None:
    """What asked the visit to end, where an error on the way out took its place; None where nothing did.

    Giving a disk back is more than a few steps, and one of them may fail: the visit has to end all the same.
    """
    behind = error.__context__
    while behind is not None and isinstance(behind, Exception):
        behind = behind.__context__
    return behind
