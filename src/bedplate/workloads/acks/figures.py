"""The figures of a run of an own engine's writer: a transaction is one that it acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from bedplate.figures.run import FigureMaker
from bedplate.figures.transaction_run import (
    OF_RECORD,
    TransactionEvidence,
    TransactionFigures,
    TransactionRun,
)
from bedplate.figures.validity import CHECKPOINTS_UNKNOWN, SERVER_BROKE
from bedplate.model.reason import Reason
from bedplate.model.rules import Rule, RunRules, Spoken, spoken
from bedplate.model.visit import Validity
from bedplate.units import percent
from bedplate.workloads.acks.model import AcksSummary, read_summary

TOGETHER_SHARE_MAX = 0.01
QUIET_SHARE_MAX = 0.10
QUIET_MIN_S = 1.0

_OF_A_SERVER = frozenset({SERVER_BROKE.code, CHECKPOINTS_UNKNOWN.code})


@dataclass(frozen=True, kw_only=True)
class AcksEvidence(TransactionEvidence):
    """Of a writer: which share of its lines came in one read with another of their client, and its longest silence."""

    together_share: float | None
    quiet_s: float | None


def _read_late(evidence: AcksEvidence) -> Spoken | None:
    share = evidence.together_share
    if share is None or share <= TOGETHER_SHARE_MAX:
        return None
    return spoken(
        f"{percent(share, digits=1)} of the lines came together with another of their client (limit {percent(TOGETHER_SHARE_MAX)}), so their "
        "time is not known. The writer holds lines back, and must flush after each; or the reader of its pipe had no processor",
        share=share,
        limit=TOGETHER_SHARE_MAX,
    )


def _fell_silent(evidence: AcksEvidence) -> Spoken | None:
    quiet_s = evidence.quiet_s
    if quiet_s is None or quiet_s <= max(QUIET_MIN_S, QUIET_SHARE_MAX * evidence.duration_s):
        return None
    return spoken(
        f"nothing was acknowledged for {quiet_s:.1f} of {evidence.duration_s:.1f} s: a stall counts as one slow transaction of "
        "each client, so that percentiles hide it",
        seconds=quiet_s,
    )


READ_LATE: Rule[AcksEvidence] = Rule(
    "acknowledgements read late",
    f"more than {percent(TOGETHER_SHARE_MAX)} of the lines came in one read with another of their client",
    "a client prints a line for each commit, so that two at once have no times of their own",
    _read_late,
)

VALIDITY: RunRules[AcksEvidence] = RunRules(
    "acks",
    (
        *(rule for rule in OF_RECORD if rule.code not in _OF_A_SERVER),
        READ_LATE,
        Rule(
            "writer fell silent",
            f"no line for more than {percent(QUIET_SHARE_MAX)} of the window, and for more than {QUIET_MIN_S:g} s",
            "a client that waits begins no transaction, so that a stall is one slow transaction of each",
            _fell_silent,
        ),
    ),
)


class _AcksMeasured(TransactionRun):
    threads_fact: ClassVar[str] = "clients"

    def read_only(self) -> bool:
        return False

    def verdict(self, course: pl.DataFrame) -> tuple[Validity, tuple[Reason, ...]]:
        summary = self.inputs.summary
        own = summary if isinstance(summary, AcksSummary) else None
        evidence = AcksEvidence(
            **self.shared_evidence(course),
            client="the reader of the pipe",
            together_share=own.together / own.transactions if own and own.transactions else None,
            quiet_s=own.quiet_s if own else None,
        )
        return VALIDITY.judge(evidence)


FIGURES: FigureMaker = TransactionFigures(_AcksMeasured, read_summary)
