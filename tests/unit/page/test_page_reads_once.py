"""A page reads every record of a study once, and looks once at what time did to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_power_cuts import power_cut_study

from bedplate.analysis.overview import study_health
from bedplate.model import codec
from bedplate.page.build import build_report

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview, StudyHealth


def test_a_page_reads_and_looks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = [power_cut_study(tmp_path / name) for name in ("one", "other")]
    read: Counter[Path] = Counter()
    looked: Counter[Path] = Counter()
    read_bytes = codec.read_bytes

    def counted_bytes(path: Path) -> bytes:
        read[path] += 1
        return read_bytes(path)

    def counted_health(found: Overview) -> StudyHealth:
        looked[found.study.directory] += 1
        return study_health(found)

    monkeypatch.setattr(codec, "read_bytes", counted_bytes)
    monkeypatch.setattr("bedplate.analysis.overview.study_health", counted_health)
    build_report(studies, tmp_path / "report.html")
    assert dict.fromkeys(studies, 1) == looked
    most = Counter[str]()
    for path, times in read.items():
        most[path.name] = max(most[path.name], times)
    # The format is asked for before the rest; points and recordings are held against their checksums before they are read.
    once = ("visit.json", "run.json", "record.json", "schedule.json", "machine.json")
    assert [1] * len(once) == [most[name] for name in once]
    assert 2 == max(most.values())
