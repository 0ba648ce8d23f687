"""Whether the verdict of a recording may be believed."""

from __future__ import annotations

from bedplate.figures.power_cut_verdict import POWER_CUT_RULES, CutEvidence
from bedplate.figures.rule import RunRules

VALIDITY: RunRules[CutEvidence] = RunRules("power cuts", POWER_CUT_RULES)
