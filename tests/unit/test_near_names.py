"""`did you mean` for every name that a person may write wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.command_line import call_here

from bedplate.analysis.claims import load_claims
from bedplate.analysis.condition import parse_condition
from bedplate.campaign.planning import own_plans, plan_path
from bedplate.errors import PlanError
from bedplate.model.metrics import METRICS
from bedplate.near_names import near_names, near_paths, quoted, unknown_name, unknown_run

SMALL = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=2, course_s=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("near")
    write_study(folder / "bedplate-study" / "study", SMALL)
    return folder


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("tsp", "tps"),
        ("TPS", "tps"),
        ("latency_p99", "latency_ms_p99"),
        ("tps_vc", "tps_cv"),
        ("speed", None),
    ],
)
def test_a_metric_that_is_nearly_right_is_found(word: str, near: str | None) -> None:
    assert near == next(iter(near_names(word, METRICS)), None)


def test_a_part_of_a_name_is_near_and_another_file_system_is_not() -> None:
    assert "latency_ms_p99" in near_names("p99", METRICS)
    assert () == near_names("zfs", ["xfs", "ext4"])
    assert "no run is called 'read-onyl'; did you mean read-only?" == unknown_run("read-onyl", ["read-only"])
    assert "metric 'x' is not known; known are none" == unknown_name("metric", "x", [])


def test_a_hostile_name_is_short_and_quoted() -> None:
    assert len(unknown_name("metric", "\x1b[31m" * 10_000, METRICS)) < 5000
    assert "'\\x1b[31m'" == quoted("\x1b[31m")


def test_a_file_beside_a_path_is_near(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").touch()
    assert (tmp_path / "quick.toml",) == near_paths(tmp_path / "quik.toml")
    assert () == near_paths(tmp_path / "nowhere" / "quick.toml")
    assert () == near_paths(tmp_path / ("x" * 10_000))


def test_a_study_is_found_one_level_below_and_a_wrong_name_is_told_from_it(folder: Path) -> None:
    for command in ("show", "status"):
        assert 0 == call_here(command, folder / "bedplate-study").returncode
    for words in (("extend", "--repetitions", "3"), ("cancel",)):
        # The plan of this study is a pretence, and it is the one that was looked for.
        meant = call_here(*words, folder / "bedplate-study").stderr
        assert f"own plan is damaged: {folder / 'bedplate-study' / 'study' / 'plan.toml'}" in meant
    wrong = call_here("show", folder / "bedplate-studi")
    assert 2 == wrong.returncode
    assert f"did you mean {folder / 'bedplate-study'}?" in wrong.stderr
    write_study(folder / "bedplate-study" / "other", SMALL)
    several = call_here("show", folder / "bedplate-study").stderr
    assert f"holds several studies; name one: {folder / 'bedplate-study' / 'other'}, " in several


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "--metric", "tsp"), "did you mean tps?"),
        (("show", "--workload", "read-onyl"), "did you mean read-only?"),
        (("show", "--cells", "barier=yes"), "did you mean barrier?"),
        (("show", "--cells", "type=xsf"), "filesystem.type is nowhere 'xsf'; did you mean xfs?"),
        (
            ("show", "--claims", "--file", "mine.tml"),
            "mine.tml: cannot be read: No such file or directory; did you mean mine.toml?",
        ),
        (("effects", "--metric", "tps_vc"), "did you mean tps_cv?"),
        (("advise", "--durability", "durabel"), "'unknown'. Did you mean durable?"),
        (("advise", "--workload", "read_write"), "did you mean read-write?"),
    ],
)
def test_commands_say_what_was_meant(folder: Path, words: tuple[str, ...], said: str) -> None:
    command, *rest = words
    (folder / "mine.toml").touch()
    done = call_here(command, folder / "bedplate-study" / "study", *rest, cwd=folder)
    assert 2 == done.returncode
    assert said in done.stderr


def test_a_ready_plan_is_known_by_its_name_and_a_file_of_that_name_comes_first(tmp_path: Path) -> None:
    assert own_plans() / "quick.toml" == plan_path(Path("quick")) == plan_path(Path("quick.toml"))
    by_name = call_here("plan", "quick", "--json", cwd=tmp_path)
    assert (0, by_name.stdout) == (0, call_here("plan", own_plans() / "quick.toml", "--json").stdout)
    # A path is a path.
    assert Path("plans/quick") == plan_path(Path("plans/quick"))
    assert Path("../quick") == plan_path(Path("../quick"))
    with contextlib.chdir(tmp_path):
        Path("quick").write_text("title = 5")
        assert Path("quick") == plan_path(Path("quick"))
    wrong = call_here("plan", "quik", cwd=tmp_path)
    assert (2, True) == (wrong.returncode, "did you mean quick" in wrong.stderr)
    assert "ready plans: aa, " in call_here("plan", "zzzzzz", cwd=tmp_path).stderr
    long = call_here("plan", "x" * 10_000, cwd=tmp_path)
    assert (2, True) == (long.returncode, len(long.stderr) < 1000)


def test_a_word_of_few_and_a_condition_have_near_ones_too() -> None:
    assert "'fish'. Did you mean zsh?" in call_here("completion", "zhs").stderr
    assert "'fish'\n" in call_here("completion", "powershell").stderr
    with pytest.raises(PlanError, match=r"did you mean slower or lower\?; these would do"):
        parse_condition("slwoer 5%", margin=0.05)


def test_the_likeliest_of_plans_beside_it_and_ready_ones_comes_first(tmp_path: Path) -> None:
    for name in ("c", "c2", "k", "mine"):
        (tmp_path / f"{name}.toml").touch()
    assert "did you mean quick?" in call_here("plan", "qick.toml", cwd=tmp_path).stderr
    assert "did you mean mine.toml?" in call_here("plan", "mien.toml", cwd=tmp_path).stderr
    assert "did you mean mine.toml?" in call_here("plan", "mine", cwd=tmp_path).stderr


def test_a_path_that_is_inspected_or_a_file_of_claims_has_near_ones(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "claims.toml").touch()
    assert f"did you mean {tmp_path}/data?" in call_here("doctor", str(tmp_path / "dtaa")).stderr
    assert "did you mean" not in call_here("doctor", str(tmp_path / "zzzzzz")).stderr
    with pytest.raises(PlanError, match=r"did you mean .*/claims\.toml\?"):
        load_claims([tmp_path / "clams.toml"])
