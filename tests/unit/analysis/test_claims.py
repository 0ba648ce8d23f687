"""Claims of every kind, judged on studies of which the truth is known; and the claims that come with bedplate."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_study import HOSTILE
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.claims import (
    ClaimsAnswer,
    Finding,
    JudgedClaim,
    claim_sentences,
    judge_claims,
    load_claims,
    parse_claims,
)
from bedplate.analysis.overview import overview
from bedplate.errors import PlanError
from bedplate.terminal.advice_tables import claim_tables, claims_document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLAIMS = sorted((Path(__file__).parents[3] / "claims").glob("*.toml"))
RECIPE = replace(KNOWN, database_blocks=(1024, 2048, 8192, 16384), filesystem_blocks=(1024, 4096))
SHIPPED = {
    "vondra-2011": [
        "read-only-small-blocks",
        "read-only-8-to-16",
        "read-only-2-to-8",
        "small-filesystem-blocks",
        "filesystem-blocks-of-4k",
        "nodatacow-read-only",
        "nodatacow-read-write",
        "reiserfs-read-only",
        "nilfs2-page-cache",
        "barriers-off-small-blocks",
        "barriers-off-spread",
        "barriers-best-block",
        "barriers-small-differences",
        "no-barriers-best-block",
        "smallest-blocks-corner",
        "checkpoint-collapse",
        "ext4-loads-faster-pgbench",
        "ext4-loads-faster-pgbench-small",
        "ext4-loads-faster-tpch",
        "ext4-loads-faster-tpch-small",
        "tpch-load-4k",
        "tpch-larger-blocks",
        "tpch-32k-best",
        "tpch-xfs-constant",
    ],
    "chu-2012": ["reads-alike", "jfs-synchronous", "ext2-asynchronous"],
    "bonnie-2011": ["ext-direct", "xfs-least-cpu", "btrfs-most-cpu"],
}
HEAD = 'run = "read-write"\nmetric = "tps"\n'


def speed(place: Place) -> float:
    """Barriers cost half at 1 kB and less above; 2 kB blocks are best without them, and nothing matters with them.

    XFS is a tenth slower; a file system block of 1 kB costs a fifth on ext4 without barriers. A repetition slows
    all, a run scatters by 1 %.
    """
    cell = place.cell
    size = cell.build.block_size_bytes
    noise = random.Random(f"{cell.id} {place.repetition} {place.canary}").gauss(0, 0.01)
    found = 1000.0
    if cell.filesystem.barrier is False:
        found *= 2.0 * 0.8 ** abs(math.log2(size / 2048))
        found *= 0.8 if cell.filesystem.block_size_bytes == 1024 else 1.0
    elif cell.filesystem.block_size_bytes == 1024:
        found *= 1.1
    found *= {"ext4": 1.0, "xfs": 0.9, "btrfs": 1.0}[cell.filesystem.type]
    return found * math.exp(noise) * 0.9**place.repetition


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_study(tmp_path_factory.mktemp("claims") / "study", speed, RECIPE)


def file_of(*checks: str, head: str = HEAD) -> str:
    tables = "".join(f"[[claim.check]]\n{head}{check}\n" for check in checks)
    return f'title = "Test"\n[[claim]]\nid = "one"\nsentence = "It is so."\n{tables}'


def ask(studies: Path | Sequence[Path], *checks: str, head: str = HEAD) -> ClaimsAnswer:
    paths = [studies] if isinstance(studies, Path) else studies
    return judge_claims([overview(path) for path in paths], [parse_claims(file_of(*checks, head=head))])


def one(found: ClaimsAnswer) -> JudgedClaim:
    ((only,),) = found.judged
    return only


def printed(found: ClaimsAnswer) -> str:
    return as_printed(claim_tables(found))


EXT4 = 'where = "type=ext4"\n'
SIDES = 'baseline = "barrier=yes"\ncontender = "barrier=no"\n'
XFS = 'baseline = "type=ext4 barrier=yes"\ncontender = "type=xfs"\n'
OFF = 'where = "type=ext4 barrier=no"\n'
ON = 'where = "type=ext4 barrier=yes"\n'


@pytest.mark.parametrize(
    ("check", "finding"),
    [
        (f'kind = "ratio"\n{XFS}at_least = 0.85\nat_most = 0.95', Finding.HOLDS),
        (f'kind = "ratio"\n{XFS}at_least = 1.0', Finding.FAILS),
        (f'kind = "ratio"\n{XFS}at_least = 0.9', Finding.CANNOT_TELL),
        (f'kind = "ratio"\neach = "pair"\n{XFS}at_most = 0.97', Finding.HOLDS),
        (f'kind = "ratio"\neach = "build.block_size"\n{SIDES}at_least = 1.0', Finding.FAILS),
        (f'kind = "ratio"\n{SIDES}at_least = 1.0', Finding.HOLDS),
        # Of the four pairs with 1 kB file system blocks alone, every gain is smaller than 1.7.
        (f'kind = "ratio"\neach = "pair"\n{SIDES}at_least = 1.7', Finding.FAILS),
        (f'kind = "best"\n{OFF}factor = "build.block_size"\nbest = "2 kB"', Finding.HOLDS),
        (f'kind = "best"\n{OFF}factor = "build.block_size"\nbest = "8 kB"\nabout = 2', Finding.FAILS),
        (f'kind = "best"\n{OFF}factor = "build.block_size"\nbest = "4 kB"\nabout = 2', Finding.HOLDS),
        (f'kind = "best"\n{ON}factor = "build.block_size"\nbest = "2 kB"', Finding.CANNOT_TELL),
        (f'kind = "best"\n{OFF}factor = "filesystem.block_size"\nbest = "4k"', Finding.HOLDS),
        (
            (
                f'kind = "best"\n{OFF}each = "filesystem.block_size"\nfactor = "build.block_size"\n'
                'like = "filesystem.block_size"'
            ),
            Finding.FAILS,
        ),
        (
            (
                f'kind = "best"\n{OFF}each = "filesystem.block_size"\nfactor = "build.block_size"\n'
                'like = "filesystem.block_size"\nabout = 2'
            ),
            Finding.HOLDS,
        ),
        (f'kind = "alike"\n{ON}factor = "build.block_size"\nmargin = 0.05', Finding.HOLDS),
        (f'kind = "alike"\n{OFF}factor = "build.block_size"\nmargin = 0.05', Finding.FAILS),
        (f'kind = "spread"\nfactor = "build.block_size"\n{EXT4}{SIDES}at_least = 1.0', Finding.HOLDS),
        # Barriers, which ext4 alone was asked about, keep no two of their cells apart.
        (
            (
                'kind = "spread"\nfactor = "filesystem.block_size"\nbaseline = "type=ext4"\ncontender = "type=xfs"\n'
                "at_least = 0.5\nat_most = 2.0"
            ),
            Finding.HOLDS,
        ),
        (
            (
                f'kind = "spread"\nfactor = "build.block_size"\n{EXT4}baseline = "barrier=no"\n'
                'contender = "barrier=yes"\nat_least = 1.0'
            ),
            Finding.FAILS,
        ),
        (
            (
                f'kind = "interaction"\n{EXT4}{SIDES}at = "build.block_size=2k"\n'
                'against = "build.block_size=16k"\nat_least = 1.5'
            ),
            Finding.HOLDS,
        ),
        (
            (
                f'kind = "interaction"\n{EXT4}{SIDES}at = "build.block_size=2k"\n'
                'against = "build.block_size=16k"\nat_most = 1.0'
            ),
            Finding.FAILS,
        ),
        (
            (
                f'kind = "opposite"\n{EXT4}baseline = "filesystem.block_size=4k"\n'
                'contender = "filesystem.block_size=1k"\nat = "barrier=yes"\nagainst = "barrier=no"'
            ),
            Finding.HOLDS,
        ),
        (
            f'kind = "opposite"\n{EXT4}{SIDES}at = "build.block_size=2k"\nagainst = "build.block_size=1k"',
            Finding.FAILS,
        ),
    ],
)
def test_every_kind_finds_the_truth(study: Path, check: str, finding: Finding) -> None:
    found = one(ask(study, check))
    assert finding == found.finding, found
    assert 5 == found.n
    if finding is Finding.HOLDS:
        assert found.low is None or found.high is None or found.low < found.high


def test_the_ratio_is_the_true_one_and_its_interval_holds_it(study: Path) -> None:
    found = one(ask(study, f'kind = "ratio"\n{XFS}at_most = 1.0'))
    assert found.low is not None
    assert found.high is not None
    # Over both file system blocks: those of 1 kB are 1.1 times as fast with barriers on both sides.
    assert found.low < 0.9 < found.high
    assert found.estimate == pytest.approx(0.9, rel=0.02)


def test_a_quotient_of_two_figures_is_a_value(study: Path) -> None:
    head = 'run = "read-write"\nmetric = "tps_in_checkpoint"\nper = "tps_outside"\n'
    # The synthetic study slows to 0.7 within checkpoints and runs at 1.2 outside.
    assert (
        Finding.HOLDS is one(ask(study, 'kind = "value"\nat_least = 0.55\nat_most = 0.6', head=head)).finding
    )
    each = one(ask(study, 'kind = "value"\neach = "pair"\nat_most = 0.5', head=head))
    assert Finding.FAILS is each.finding
    assert each.estimate == pytest.approx(0.7 / 1.2)


def test_all_checks_must_hold_and_one_refutes(study: Path) -> None:
    true, false = f'kind = "ratio"\n{XFS}at_most = 1.0', f'kind = "ratio"\n{XFS}at_least = 1.0'
    assert Finding.HOLDS is one(ask(study, true, true)).finding
    refuted = one(ask(study, true, false))
    assert Finding.FAILS is refuted.finding
    assert refuted.high is not None
    assert refuted.high < 1
    assert refuted.confidence is not None
    assert refuted.confidence > one(ask(study, false)).confidence  # type: ignore[operator]


def test_a_part_that_was_not_measured_keeps_a_claim_from_holding_and_not_from_failing(study: Path) -> None:
    absent = 'kind = "ratio"\nbaseline = "type=ext4"\ncontender = "type=jfs"\nat_least = 1.0'
    partly = one(ask(study, f'kind = "ratio"\n{XFS}at_most = 1.0', absent))
    assert Finding.NOT_MEASURED is partly.finding
    assert "nowhere 'jfs'" in partly.reasons[0]
    assert Finding.FAILS is one(ask(study, f'kind = "ratio"\n{XFS}at_least = 1.0', absent)).finding


@pytest.mark.parametrize(
    ("check", "head", "words"),
    [
        ('kind = "ratio"\ncontender = "type=jfs"\nat_least = 1.0', HEAD, "nowhere 'jfs'"),
        ('kind = "ratio"\ncontender = "data=journal"\nat_least = 1.0', HEAD, "no factor is called 'data'"),
        ('kind = "value"\nat_least = 1.0', 'run = "cold"\nmetric = "tps"\n', "no run 'cold' has a tps"),
        ('kind = "value"\nat_least = 1.0', 'run = "read-write"\nmetric = "query_s"\n', "no run has a value"),
        ('kind = "value"\nitems = ["x"]\nat_least = 1.0', HEAD, "no run has a tps of x"),
        ('kind = "best"\nfactor = "build.block_size"\nbest = "32 kB"', HEAD, "measured: 1 KiB, 2 KiB"),
        ('kind = "alike"\nfactor = "shared_buffers"', HEAD, "no factor is called 'shared_buffers'"),
    ],
)
def test_what_was_not_measured_says_why(study: Path, check: str, head: str, words: str) -> None:
    found = one(ask(study, check, head=head))
    assert Finding.NOT_MEASURED is found.finding
    assert words in "; ".join(found.reasons)
    assert found.estimate is None


def test_levels_that_a_study_has_not_are_no_error_beside_one_that_it_has(study: Path) -> None:
    check = (
        'kind = "ratio"\nbaseline = "type=ext4 barrier=yes"\ncontender = "type=jfs,xfs,nilfs2"\nat_most = 1.0'
    )
    assert Finding.HOLDS is one(ask(study, check)).finding


def test_a_level_at_which_nothing_matches_is_told(study: Path) -> None:
    """XFS and Btrfs have no barriers here: the finding is of ext4, and says so."""
    found = one(ask(study, f'kind = "ratio"\neach = "filesystem.type"\n{SIDES}at_most = 2.2'))
    assert any("nothing to judge at xfs, btrfs" in note for note in found.notes)


def test_two_repetitions_describe_and_do_not_judge(tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(RECIPE, repetitions=2))
    found = ask(study, f'kind = "ratio"\n{XFS}at_most = 1.0')
    assert Finding.CANNOT_TELL is one(found).finding
    assert one(found).estimate == pytest.approx(0.9, rel=0.03)
    assert (None, None) == (one(found).low, one(found).high)
    assert "a verdict needs 3 repetitions" in printed(found)
    for check in (
        f'kind = "spread"\nfactor = "build.block_size"\n{EXT4}{SIDES}at_least = 1.0',
        f'kind = "best"\n{OFF}factor = "build.block_size"\nbest = "2 kB"',
        f'kind = "alike"\n{ON}factor = "build.block_size"',
    ):
        assert Finding.CANNOT_TELL is one(ask(study, check)).finding


def test_durability_classes_are_not_ranked_without_saying_so(study: Path) -> None:
    across = one(ask(study, f'kind = "ratio"\n{EXT4}{SIDES}at_least = 1.0'))
    assert Finding.HOLDS is across.finding
    assert any("survives a power cut differs" in note for note in across.notes)
    spread = one(ask(study, f'kind = "spread"\nfactor = "build.block_size"\n{EXT4}{SIDES}at_least = 1.0'))
    assert any("survives a power cut differs" in note for note in spread.notes)
    assert () == one(ask(study, f'kind = "ratio"\n{XFS}at_most = 1.0')).notes


def test_suspect_runs_are_left_out_and_counted(tmp_path: Path) -> None:
    def lying(place: Place) -> float:
        return speed(place) * (
            100.0 if place.repetition == 1 and place.cell.filesystem.type == "ext4" else 1.0
        )

    recipe = replace(KNOWN, suspect=tuple((cell, 1) for cell in range(4)))
    found = one(ask(known_study(tmp_path / "study", lying, recipe), f'kind = "ratio"\n{XFS}at_most = 0.97'))
    assert Finding.HOLDS is found.finding
    assert 4 == found.n
    assert any("suspect runs: 2 left out" in note for note in found.notes)


def test_many_claims_keep_the_false_discovery_rate(tmp_path: Path) -> None:
    """Of 60 claims about pure chance nearly none may be told; each alone would be, once in twenty."""

    def noise(place: Place) -> float:
        return 1000 * math.exp(random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.05))

    study = known_study(tmp_path / "study", noise, replace(RECIPE, filesystem_blocks=(1024, 2048, 4096)))
    places = [
        (kind, block, size)
        for kind in ("type=ext4 barrier=yes", "type=ext4 barrier=no", "type=xfs")
        for block in ("1k", "2k", "4k")
        for size in ("1k", "2k", "8k", "16k")
    ]
    claims = [
        f'[[claim]]\nid = "c{at}"\nsentence = "x"\n[[claim.check]]\n{HEAD}kind = "ratio"\nat_least = 1.0\n'
        f'where = "filesystem.block_size={block} build.block_size={size}"\n'
        f'baseline = "{kind}"\ncontender = "{other}"\n'
        for at, (kind, block, size) in enumerate(places)
        for other in (["type=xfs"] if kind != "type=xfs" else ["type=ext4 barrier=yes"])
    ]
    found = judge_claims([overview(study)], [parse_claims('title = "x"\n' + "".join(claims))])
    assert len(places) == found.asked
    assert found.told <= 2
    assert found.confidence > 0.99


def test_claims_of_several_studies_are_judged_in_each(study: Path, tmp_path: Path) -> None:
    other = known_study(tmp_path / "other", lambda place: 1 / speed(place), RECIPE)
    found = ask([study, other], f'kind = "ratio"\n{XFS}at_most = 1.0')
    assert [[Finding.HOLDS, Finding.FAILS]] == [[each.finding for each in judged] for judged in found.judged]
    assert "in other" in printed(found)


def test_the_table_is_readable_at_80_columns(study: Path) -> None:
    text = printed(ask(study, f'kind = "ratio"\n{XFS}at_least = 0.85\nat_most = 0.95'))
    assert all(len(line) <= 80 for line in text.splitlines())
    for words in ("It is so.", "holds", "n 5", "type=xfs", "1 claim: 1 holds", "0.9"):
        assert words in text


def test_the_document_says_what_the_table_says(study: Path) -> None:
    document = json.loads(json.dumps(claims_document(ask(study, f'kind = "ratio"\n{XFS}at_most = 1.0'))))
    (claim,) = document["files"][0]["claims"]
    assert ("one", "holds", "tps", 5) == tuple(claim[key] for key in ("id", "finding", "metric", "n"))
    assert claim["low"] < claim["estimate"] < claim["high"] < 1
    assert "≤ 1" in claim["checks"][0]


def test_a_hostile_study_is_only_words(tmp_path: Path) -> None:
    study = known_study(
        tmp_path / "study", speed, replace(RECIPE, hostile=True, runs=("read-write", "read-only"))
    )
    found = ask(
        study,
        'kind = "value"\neach = "pair"\nat_least = 1.0',
        head=f"run = {json.dumps(HOSTILE)}\nmetric = 'tps'\n",
    )
    assert one(found).finding in Finding
    assert printed(found)


def _every_study(base: Path) -> dict[str, Callable[[], Path]]:
    recipe = replace(RECIPE, runs=("read-only", "read-write"), repetitions=3)
    return {
        "pgbench": lambda: known_study(base / "pgbench", speed, recipe),
        "tpch": lambda: synthetic_tpch_study(base / "tpch", TpchRecipe(database_blocks=(2048, 8192, 32768))),
        "lmdb": lambda: synthetic_microbenchmark(base / "lmdb"),
    }


def test_the_shipped_claims_are_judged_on_every_kind_of_study(tmp_path: Path) -> None:
    studies = [make() for make in _every_study(tmp_path).values()]
    files = load_claims(CLAIMS)
    found = judge_claims([overview(path) for path in studies], files)
    every = {each.claim.id: each for judged in found.judged for each in judged}
    assert {claim.id for file in files for claim in file.claim} == set(every)
    for each in every.values():
        if each.finding is Finding.NOT_MEASURED:
            assert each.reasons, each.claim.id
    measured = {name for name, each in every.items() if each.finding is not Finding.NOT_MEASURED}
    expected = {
        "read-only-8-to-16",
        "no-barriers-best-block",
        "barriers-off-spread",
        "tpch-32k-best",
        "reads-alike",
    }
    assert expected <= measured | {"read-only-2-to-8"}, measured
    text = printed(found)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert json.loads(json.dumps(claims_document(found)))["judged"] == found.asked


def test_the_shipped_claims_are_all_those_of_the_original_studies() -> None:
    assert ["bonnie-2011", "chu-2012", "vondra-2011"] == [path.stem for path in CLAIMS]
    found = {
        path.stem: [claim.id for claim in file.claim]
        for path, file in zip(CLAIMS, load_claims(CLAIMS), strict=True)
    }
    assert SHIPPED == found


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("title = ", ["not TOML"]),
        ("", ["title: missing; expected one line of text", "claim: missing"]),
        ('title = "x"\nclaim = []', ["claim: found []; allowed are one or more tables"]),
        (
            file_of('kind = "ratio"\ncontender = "x"'),
            ["claim[0].check[0]: at_least, at_most or both are needed"],
        ),
        (file_of('kind = "ratio"\ncontender = "x"\nat_least = -1'), ["a bound of a ratio is above 0"]),
        (file_of('kind = "value"\nat_least = 2\nat_most = 1'), ["at_least 2 is not below at_most 1"]),
        (file_of('kind = "value"\nat_least = inf'), ["claim[0].check[0].at_least: found inf"]),
        (file_of('kind = "nope"'), ["claim[0].check[0].kind: expected one of ratio, value"]),
        (file_of("at_least = 1"), ["claim[0].check[0].kind: expected one of ratio, value"]),
        (file_of('kind = "best"\nfactor = "x"'), ["allowed is exactly one of best and like"]),
        (
            file_of('kind = "alike"\nfacto = "x"'),
            ["facto: unknown key; did you mean factor?", "factor: missing"],
        ),
        (file_of('kind = "alike"\nfactor = "x"\neach = "pair"'), ['each = "pair" is not for alike']),
        (file_of('kind = "value"\nat_least = 1', head='run = "x"\nmetric = "tpss"\n'), ["did you mean tps?"]),
        (
            file_of(
                'kind = "value"\nat_least = 1\nper = "tps"',
                head='run = "x"\nmetric = "fast_transaction_share"\n',
            ),
            ["per divides positive figures only"],
        ),
        (
            file_of('kind = "best"\nfactor = "x"\nbest = "y"', head='run = "x"\nmetric = "transactions"\n'),
            ["neither way is better"],
        ),
        (
            f'{file_of("kind = 1")}[[claim]]\nid = "a b"\nsentence = "x\\ny"\n',
            ["id: found", "sentence: found", "check: missing"],
        ),
    ],
)
def test_a_wrong_file_has_every_reason_at_once(text: str, reasons: Sequence[str]) -> None:
    with pytest.raises(PlanError) as error:
        parse_claims(text)
    for words in reasons:
        assert any(words in reason for reason in error.value.reasons), error.value.reasons


def test_two_claims_of_one_name_are_refused() -> None:
    text = file_of('kind = "value"\nat_least = 1')
    with pytest.raises(PlanError, match="two claims have the id one"):
        parse_claims(text + text.partition("\n")[2])


def test_errors_of_all_files_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("title = 3")
    (tmp_path / "b.toml").write_bytes(b"\xff")
    with pytest.raises(PlanError) as error:
        load_claims([tmp_path / "a.toml", tmp_path / "b.toml", tmp_path / "c.toml"])
    assert {"a.toml", "b.toml", "c.toml"} == {
        Path(reason.partition(":")[0]).name for reason in error.value.reasons
    }


def test_a_claim_that_is_measured_in_part_is_no_contradiction_of_the_counts(study: Path) -> None:
    """It has an interval and was not measured: both counts are right, and what tells them apart is said."""
    checks = "".join(
        f'[[claim.check]]\n{HEAD}kind = "ratio"\nat_least = 0.1\nbaseline = "type=ext4"\ncontender = "type={kind}"\n'
        for kind in ("xfs", "jfs")
    )
    file = parse_claims(f'title = "x"\n[[claim]]\nid = "a"\nsentence = "x"\n{checks}')
    counts, sureness, *_ = claim_sentences(judge_claims([overview(study)], [file]))
    assert "1 claim: 1 was not measured." == counts
    assert sureness.startswith(
        "0 of 1 claim with an interval can be judged. 1 of them is measured in part: that may be refuted, and cannot hold."
    )
