"""The documents that TPC-H's runs keep beside the records that all share, for docs/STUDY_FORMAT.md."""

from __future__ import annotations

from bedplate.workloads.tpch.query_plan import QueryPlans

RECORDS = (QueryPlans,)
