"""Studies of earlier versions are read, and said the same of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.studies.former_studies import NAMES, answers, differences, said_before, unpacked

# How a difference begins that was made on purpose since a study was packed, without the places in lists, each with its reason:
# the path, and where a word of many changed both words.
NAMED: dict[str, str] = {
    ".advise.contests[].": "every cell has a row, judged or not, in the order of the answer, and no sentences of its own (decision 114)",
    ".advise.sentences": "the same",
    **{
        f"{where}: '{class_}' before, 'unknown'": "behind bad cuts in order, of which nothing says whether the recorder or the engine lost "
        "something, no class rests on what was promised"
        for class_ in ("durable", "bounded loss")
        for where in (
            ".show.studies[].cells[].durability.volatile_cache",
            ".show.studies[].cells[].durability.protected_cache",
            *(
                f".export.{table}[].durability_{cache}"
                for table in ("runs", "figures")
                for cache in ("volatile", "volatile_512", "protected")
            ),
        )
    },
    **{
        f".advise.durability.{cell}.class": "the same"
        for cell in (
            "ext2-pg8k-9d0b98b9",
            "ext4-pg8k-0150c9bd",
            "ext4-pg8k-70848273",
            "ext4-pg8k-data-writeback-ace7bbc7",
            "ext4-pg8k-journal-none-3ea85162",
            "xfs-pg8k-c179d13c",
        )
    },
    ".advise.sentences: [{'kind': 'limits', 'text': 'Nothing is recommended: no run has a speed, or another figure of the whole run, yet.', "
    "'cel before": "the same: fewer cells are durable",
    ".export.power_cuts[].weaker": "with which device that asks less a cut was bad too, empty of others",
    ".export.verdicts[].never_synced": "that an engine acknowledged far more commits than it flushed, empty of others",
    ".export.verdicts[].without_cut": "what is missing without any cut, empty of others",
    **{
        f'{where}: ["image file: the figures include': "where the power was cut, the engine stood on a disk in memory"
        for where in (".show.studies[].marks", ".advise.marks", ".page.studies[].marks")
    },
    ".page.surroundings.names: [['machine', 'machine'], ['disk', 'device stack']": "whether a dataset was loaded or restored",
    ".page.surroundings.kinds[][][].dataset": "the same; former studies loaded theirs",
    ".export.power_cuts[].volatile_discards": "discards that a cut found in the cache, of which former studies say none",
    ".show.studies[].pruned": "cells that the kernel does not take, of which former studies name none",
    ".page.rules": "what the script judges by and says comes with the document",
    ".page.effects[].stopped": "cells of which runs were stopped at a limit, and which are in no effect",
    ".effects.effects[].stopped": "the same",
    ".effects.effects[].parts[].effects[].judged.same": "a ratio within the margin is the same, as in compare (decision 111)",
    ".effects.effects[].parts[].effects[].judged.confidence": "each ratio has the confidence of its factor's family",
    ".effects.effects[].parts[].effects_confidence": "the same, where all factors were one family",
    ".effects.effects[].parts[].effects[].verdict": "what compare says of the same pairs",
    ".page.effects[].families": "by which the script knows the same contrast again",
    ".page.effects[].designs[].confidence": "in words, as factors differ in it",
    ".page.effects[].designs[].ratios": "the verdict in place of whether the interval leaves out 1",
    ".effects.effects[].parts[].effects[].left_out": "how many pairs of cells are in no ratio, as they have one repetition in common",
    ".advise.sentences[].text: 'Unsafe with a volatile cache, 4 KiB sectors: ext4 PostgreSQL full_page_writes=off": "what makes one cell "
    "unsafe is not said of all",
    ".page.metrics[].direction": "the words for which way is better come from Python",
    ".page.metrics[].is_speed": "a fact of the metric in place of a list of units in the script",
    ".page.metrics[].definition: 'WAL generated / transactions' before, "
    '"WAL, or InnoDB\'s log, generated / transactions" now': "a log that two servers have, each by its name",
    ".page.surroundings.following: [['kernel.', ['kernel']], ['build.', ['build']], ['build.engine', ['tools']]] before": "a "
    "library of one's own is a factor, from which the build of the engine follows",
    ".page.ranking": "which cells lead in a run, for the courses that a page opens with",
    ".page.lmdb": "the section of the microbenchmark has the name of its type",
    ".page.microbenchmark": "the same",
    ".page.runs[].writes": "a fact of the workload in place of the run's name",
    ".page.runs[].moves": "a fact of the workload in place of its name: how a run that is about bytes is drawn",
    ".show.studies[].cells[].device_": "the sectors of the study's own device, and the class that holds on it",
    ".advise.device_sector_bytes": "the same",
    ".export.runs[].device_sector_bytes": "the same",
    ".export.runs[].latency": "the emulated device with latency, which no former study has",
    ".export.runs[].chosen": "whether a search chose the visit, and former studies are none",
    ".page.cells[].promise": "the same",
    ".page.cells[].cache": "the same",
    ".page.cells[].durability": "the same, behind the classes",
    ".page.cells[].levels": "the place of the durability class, by which cells are chosen",
    ".page.factors": "the same, and which levels are usual",
    ".page.cells[].usual": "at which factors' usual levels a cell is",
    ".page.cells[].safety": "the place of its durability class among others",
    ".show.studies[].cells[].power_cuts[].recovery": "cuts in recovery, null where none was asked for",
    ".export.verdicts[].recover": "the same, empty where none was asked for",
    ".export.power_cuts[].recovery_of": "the same",
    ".export.power_cuts[].second": "third cuts, of which former studies have none",
    ".export.verdicts[].exhaustive_cuts": "cuts at every write of a recovery, of which former studies have none",
    ".export.verdicts[].exhaustive_bad": "the same",
    ".export.verdicts[].exhausted": "the same",
    ".export.verdicts[].third": "the same",
    ".export.power_cuts[].fault": "whose fault a bad cut was, empty where nobody asked; and its code",
    ".export.power_cuts[].story": "the same, in its lines",
    ".advise.contests[].sentences: [{'kind': 'limits', 'text': '3 cells are durable: descriptions and no recommendation, as a verdict "
    "needs 3 repetitions a before": "which visits would tell most per hour, behind the limits",
    ".advise.answer": "the answer of the study, as the headline has it",
    ".advise.contests[].pareto_set": "the figure of the run ranks (docs/decisions/0112): what nothing rules out has that name",
    ".advise.contests[].not_ruled_out": "the same",
    ".advise.sentences[].visits": "which visits would tell most, null of sentences about anything else",
    ".advise.sentences[].command": "what makes them, the same",
    ".show.studies[].cells[].power_cuts[].pages": "the ground of a class where an engine keeps no copies of its pages, null of others",
    ".export.verdicts[].pages": "the same, empty of others",
    ".export.power_cuts[].failed_once": "why a cut was looked at once more on a fresh copy, empty of others",
    **{
        f"{where}: '{number} of {runs} completed runs are suspect: marked wherever they stand": "words"
        for where in (".show.studies[].health[]", ".advise.sentences[].text")
        for number, runs in ((7, 16), (8, 21))
    },
    ".advise.sentences[].text: 'Nothing is recommended: no run has a speed": "runs with verdicts wait for no speed",
    **{
        f"{where}.studies[].sentence: '{before}": "words; cases that are counted have an exact interval from one repetition on"
        for where in (".show", ".page")
        for before in ("Two repetitions describe", "One repetition shows what happened once. It cannot show")
    },
    # One figure for one thing (docs/decisions/0015): the mean, which was there as `centre`, in place of the median.
    **{
        f".show.studies[].cells[].runs[].{where}median": "one figure for one thing"
        for where in ("tps.", "latency_ms_p99.", "parts[].")
    },
    ".show.studies[].cells[].runs[].metrics": "the same",
    ".show.studies[].cells[].power_cuts[].states": "states that were tried one by one, of which former studies have none",
    ".export.verdicts[].enumerated_": "the same",
    ".page.summaries.median": "the same",
    ".page.summaries.mean": "the same",
    ".page.within": "the same of parts of runs, packed",
    **{
        f".export.{table}[].{begin}": "a column for every factor, by the plan's own key"
        for table in ("runs", "figures", "verdicts", "power_cuts")
        for begin in (
            "filesystem.",
            "postgresql.",
            "lmdb.",
            "scratch_device.",
            "machine.",
            "workload.",
            "engine",
        )
    },
}
_PLACE = re.compile(r"\[\d+\]")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_a_former_study_is_what_its_version_said(name: str, tmp_path: Path) -> None:
    found = differences(said_before(name), answers(unpacked(name, tmp_path)))
    assert [] == [each for each in found if not _PLACE.sub("[]", each).startswith(tuple(NAMED))]


def test_a_changed_word_a_changed_figure_and_a_missing_row_are_found() -> None:
    before = {"show": {"cells": [{"tps": 100.0, "class": "durable"}, {"tps": 1.0}]}}
    for now in (
        {"show": {"cells": [{"tps": 100.0001, "class": "durable"}, {"tps": 1.0}]}},
        {"show": {"cells": [{"tps": 100.0, "class": "unsafe"}, {"tps": 1.0}]}},
        {"show": {"cells": [{"tps": 100.0, "class": "durable"}]}},
        {"show": {"cells": [{"tps": 100.0}, {"tps": 1.0}]}},
    ):
        assert 1 == len(differences(before, now))
    assert [] == differences(before, {"show": {"cells": [{"tps": 100, "class": "durable"}, {"tps": 1.0}]}})
