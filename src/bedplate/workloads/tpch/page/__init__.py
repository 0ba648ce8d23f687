"""TPC-H on the page: its scores, and the plans that queries had."""

from __future__ import annotations

from pathlib import Path

from bedplate.page.workload_page import WorkloadPage
from bedplate.statistics import tpch_scores
from bedplate.workloads.tpch import scores
from bedplate.workloads.tpch.page.document import has_tpch, tpch_document

PAGE = WorkloadPage(
    Path(__file__).parent,
    {"compare": ("scores", "TPC-H scores"), "items": ("plans", "Query plans")},
    has_tpch,
    lambda overviews, runs: {"tpch": tpch_document(overviews, runs)},
    rules={
        "query_scores": {
            "NO_TIME": tpch_scores.NO_TIME,
            "OVER_LIMIT": tpch_scores.OVER_LIMIT,
            "PLAN_UNKNOWN": tpch_scores.PLAN_UNKNOWN,
            "PLANS_IN_A_CELL": tpch_scores.PLANS_IN_A_CELL,
            "PLANS_ACROSS_CELLS": tpch_scores.PLANS_ACROSS_CELLS,
        }
    },
    templates={
        "no_time_in": tpch_scores.NO_TIME_IN,
        "over_limit_in": tpch_scores.OVER_LIMIT_IN,
        "plan_unknown_in": tpch_scores.PLAN_UNKNOWN_IN,
        "plans_in": tpch_scores.PLANS_IN,
        "plans_across": tpch_scores.PLANS_ACROSS,
        "none_kept": tpch_scores.NONE_KEPT,
        "without_time": tpch_scores.WITHOUT_TIME,
        "no_time_here": tpch_scores.NO_TIME_HERE,
        "untrusted": tpch_scores.UNTRUSTED,
        "unlike": tpch_scores.UNLIKE,
        "none_trusted": scores.NONE_TRUSTED,
        "some_untrusted": scores.SOME_UNTRUSTED,
    },
)
