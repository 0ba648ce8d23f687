"""Whatever a bad disk or a bad person makes of a source: a study, or a refusal in sentences, and never anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.studies.damaged_study import damage
from tests.support.studies.published_sources import composite, kernel_bench, pg_fs_benchmark, postgresbench

from bedplate.errors import BedplateError
from bedplate.imported.importing import import_source
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS = range(12)


def _composite(folder: Path) -> Path:
    # Six alike would be one and its copies.
    for number, name in enumerate("abcdef"):
        (folder / name).mkdir(parents=True)
        (folder / name / "composite.xml").write_text(composite(f"{12000 + number}.5:{12100 + number}.25"))
    return folder


FORMS: dict[str, Callable[[Path], Path]] = {
    "kernel-bench": lambda folder: kernel_bench(folder, lambda *_: 1000.0),
    "pg-fs-benchmark": pg_fs_benchmark,
    "postgresbench": lambda folder: postgresbench(folder, "abcdef"),
    "phoronix": _composite,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_source_is_imported_or_refused(tmp_path: Path, form: str) -> None:
    imported = 0
    for seed in SEEDS:
        source = FORMS[form](tmp_path / f"{seed}")
        # Several things at once, so that most of them meet a file that is read.
        told = [damage(source, seed * 100 + number) for number in range(4)]
        study = tmp_path / f"study{seed}"
        refused: tuple[str, ...] = ()
        try:
            found = import_source(source, study, form=form)
        except BedplateError as error:
            refused = error.reasons
        if refused:
            assert all(reason.strip() for reason in refused), told
            assert not study.exists(), told
            continue
        imported += 1
        read = read_study(study)
        assert () == read.set_aside, told
        with_figures = len(found.runs) - len(found.failures)
        assert with_figures == sum(bool(run.figures) for visit in read.visits for run in visit.runs), told
    assert imported
