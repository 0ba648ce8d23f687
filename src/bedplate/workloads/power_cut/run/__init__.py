"""Power cuts: a recorded run is cut at many points, and what a medium would hold there is asked what it still knows.

`log` reads what the recorder wrote, `positions` chooses where to cut, `window` draws what of the unflushed
writes is kept, `image` builds what the medium holds, `acknowledged` says what a client had been promised by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.workloads.power_cut.run.workload import PowerCut

if TYPE_CHECKING:
    from bedplate.visit.workload import Workload

RUN: Workload = PowerCut()
