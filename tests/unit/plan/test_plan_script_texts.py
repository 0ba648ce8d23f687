"""Every place of a plan that takes a script of pgbench reads it before anything runs, and so does what gets one from a study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.support.studies.own_data_plan import own_data_plan
from tests.unit.plan.test_plan_dump import head

from bedplate.engines.postgresql.prepare import DatabaseSource, ensure_restored
from bedplate.errors import BedplateError, PlanError
from bedplate.model.cell import Dataset
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan
from bedplate.plan.load import load_plan
from bedplate.visit.recording import ClientEnded
from bedplate.workloads.pgbench.model import without_data
from bedplate.workloads.pgbench.visit import _explained, _script_options

if TYPE_CHECKING:
    from bedplate.engines.postgresql.own_data import ClusterLayout
    from bedplate.visit.recording import VisitContext

LoadText = Callable[..., Plan]
ReasonsOf = Callable[..., tuple[str, ...]]
_SHELL = "SELECT 1; \\ SHELL id > pwn\n"
_UNDEFINED = "SELECT :id;\n"
# Where a plan names scripts; with the keys that they need there.
_PLACES = {
    "script": 'script = "mine.sql"',
    "a level of script": 'script = { vary = ["read-only", "mine.sql"] }',
    "scripts": 'scripts = ["read-only", "mine.sql@3"]',
    "a level of scripts": 'scripts = { vary = [["read-only", "read-write"], ["mine.sql", "read-only"]] }',
}


@pytest.mark.parametrize("text", [_SHELL, _UNDEFINED])
@pytest.mark.parametrize("place", _PLACES)
def test_a_script_of_a_run_is_read_with_its_plan(
    place: str, text: str, minimal: str, reasons_of: ReasonsOf, tmp_path: Path
) -> None:
    (tmp_path / "mine.sql").write_text(text)
    (reason,) = reasons_of(minimal.replace('script = "read-only"', _PLACES[place]))
    assert "mine.sql" in reason
    assert "line 1: " in reason
    assert ("\\ SHELL starts a program" if text == _SHELL else ":id is not defined") in reason


@pytest.mark.parametrize("text", [_SHELL, _UNDEFINED])
@pytest.mark.parametrize("key", ["prepare", "settle"])
def test_a_script_behind_a_restore_is_read_with_its_plan(key: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.dump").write_bytes(head() + b"rest")
    (tmp_path / "mine.sql").write_text("SELECT 1;")
    (tmp_path / "once.sql").write_text(text)
    with pytest.raises(PlanError) as refused:
        load_plan(
            own_data_plan(f'dump = "mine.dump"\n{key} = "once.sql"'), source="p.toml", directory=tmp_path
        )
    (reason,) = refused.value.reasons
    assert f"{key}: found 'once.sql'; line 1: " in reason
    assert ("\\ SHELL starts a program" if text == _SHELL else ":id is not defined") in reason


def test_every_script_of_a_plan_is_named_at_once(minimal: str, reasons_of: ReasonsOf, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text(f"SELECT 1;\nSELECT :{name};\n")
    (reason,) = reasons_of(minimal.replace('script = "read-only"', 'scripts = ["a.sql", "b.sql"]'))
    assert "a.sql line 2: :a is not defined" in reason
    assert "b.sql line 2: :b is not defined" in reason


def test_a_variable_of_the_plan_is_defined(minimal: str, load_text: LoadText, tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text(_UNDEFINED)
    lines = 'script = "mine.sql"\nvariables = { id = 3 }'
    assert load_text(minimal.replace('script = "read-only"', lines)).workloads


@pytest.mark.parametrize(
    ("protocol", "refused_under"),
    [
        ("", 'protocol = "prepared", bedplate\'s default'),
        ('protocol = "extended"', 'protocol = "extended"'),
        ('protocol = { vary = ["simple", "extended"] }', 'protocol = "extended"'),
    ],
)
def test_a_variable_in_a_string_needs_the_simple_protocol(
    protocol: str, refused_under: str, minimal: str, reasons_of: ReasonsOf, tmp_path: Path
) -> None:
    (tmp_path / "q.sql").write_text("\\set id random(1, 9)\nSELECT ':id', :id;\n")
    (reason,) = reasons_of(minimal.replace('script = "read-only"', f'script = "q.sql"\n{protocol}'))
    assert "q.sql line 2: :id is in a string, where the server takes no parameter" in reason
    assert f"under {refused_under}; " in reason
    assert 'protocol = "simple", which is pgbench\'s own default' in reason


def test_the_simple_protocol_takes_a_variable_in_a_string(
    minimal: str, load_text: LoadText, tmp_path: Path
) -> None:
    (tmp_path / "q.sql").write_text("\\set id random(1, 9)\nSELECT ':id', :id;\n")
    text = minimal.replace('script = "read-only"', 'script = "q.sql"\nprotocol = "simple"')
    assert load_text(text).workloads


@pytest.mark.parametrize(
    "said",
    [
        'ERROR:  bind message supplies 2 parameters, but prepared statement "P_0" requires 1',
        'ERROR:  bind message supplies 2 parameters, but prepared statement "…" requires 1',
        'ERROR:  syntax error at or near "$1"',
        "ERROR:  could not determine data type of parameter $1",
        "ERROR:  cannot insert multiple commands into a prepared statement",
    ],
)
def test_a_run_that_fails_of_parameters_names_the_simple_protocol(said: str) -> None:
    ended = ClientEnded(2, 0.0, f"pgbench ended with status 2: {said}", said=said)
    problem = _explained(ended, "prepared").problem or ""
    assert problem.startswith("pgbench ended with status 2: ERROR")
    assert 'protocol = "simple", which is pgbench\'s own default' in problem
    assert _explained(ended, "simple") == ended
    other = ClientEnded(2, 0.0, "deadlock detected", said="deadlock detected")
    assert _explained(other, "prepared") == other


def test_a_parameter_is_nobodys_data_and_a_name_is() -> None:
    said = 'pgbench: error: ERROR:  syntax error at or near "$1" in "customers"\n'
    assert without_data(said) == 'pgbench: error: ERROR:  syntax error at or near "$1" in "…"\n'


def test_a_command_that_a_version_lacks_is_refused(
    minimal: str, reasons_of: ReasonsOf, load_text: LoadText, tmp_path: Path
) -> None:
    (tmp_path / "mine.sql").write_text(
        "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n"
    )
    text = minimal.replace('script = "read-only"', 'script = "mine.sql"')
    (reason,) = reasons_of(f'{text}[postgresql]\nversion = "16"\n')
    assert "mine.sql has \\syncpipeline, which pgbench has since PostgreSQL 17" in reason
    assert load_text(f'{text}[postgresql]\nversion = "17"\n').workloads


def test_a_request_that_no_plan_made_hands_no_such_script_to_pgbench(tmp_path: Path) -> None:
    spec = SimpleNamespace(levels=Levels(script="custom", script_text=_SHELL), id="own")
    context = SimpleNamespace(log_directory=tmp_path, dataset=Dataset("pgbench", Levels(scale=5)))
    with pytest.raises(BedplateError, match=r"line 1: .* SHELL starts a program"):
        list(_script_options(spec, cast("VisitContext", context)))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_that_no_plan_made_runs_no_such_script_behind_its_restore(tmp_path: Path) -> None:
    source = DatabaseSource("mine.dump", "0" * 64, {"settle": _SHELL})
    with pytest.raises(PlanError, match=r"settle: line 1: .* SHELL starts a program"):
        ensure_restored(
            source,
            cast("ClusterLayout", None),
            archive=tmp_path,
            cache_directory=tmp_path,
            tell=lambda _: None,
        )
