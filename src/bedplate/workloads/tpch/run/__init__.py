"""TPC-H: its schema, its 22 queries, their parameters and order, what a right answer is, and the runs.

Clauses cited here are those of the TPC-H specification, revision 3. What bedplate does with them is not
an audited TPC-H benchmark and its figures are no TPC-H results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.workloads.tpch.run.workload import Tpch

if TYPE_CHECKING:
    from bedplate.visit.workload import Workload

RUN: Workload = Tpch()
