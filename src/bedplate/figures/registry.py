"""The makers of figures by the name of their workload; a new workload is one new file and one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.figures.bonnie import BonnieFigures
from bedplate.figures.fio import FioFigures
from bedplate.figures.lmdb import LmdbFigures
from bedplate.figures.pgbench import PgbenchFigures
from bedplate.figures.power_cut import PowerCutFigures
from bedplate.figures.tpch import TpchFigures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.figures.protocol import FigureMaker

MAKERS: Mapping[str, FigureMaker] = {
    "pgbench": PgbenchFigures(),
    "tpch": TpchFigures(),
    "lmdb": LmdbFigures(),
    "bonnie": BonnieFigures(),
    "fio": FioFigures(),
    "power_cut": PowerCutFigures(),
}


def maker_for(workload: str) -> FigureMaker:
    """The maker for a workload; StudyError lists the known ones."""
    try:
        return MAKERS[workload]
    except KeyError:
        raise StudyError(
            f"no figures are known for the workload {workload!r}; known are {', '.join(MAKERS)}. "
            "The study was made by another version of bedplate"
        ) from None
