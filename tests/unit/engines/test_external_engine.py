"""Somebody's own engine: what its folder may say, what of it becomes a cell, and what its checker's answers come to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.engines.external import oracle
from bedplate.engines.external.oracle import POWER_CUT, _Pacer, judge_document
from bedplate.engines.external.prepare import PROGRAMS_KEY, ExternalPrograms, read_description, read_folder
from bedplate.engines.external.visit import AuthorPrograms, ExternalDurability, how_it_ended, options
from bedplate.errors import (
    BedplateError,
    CommandFailed,
    KilledFromOutside,
    OutputNotUnderstood,
    PlanError,
    RequirementMissing,
)
from bedplate.host.command import Account
from bedplate.model.cell import Cell, engine_model
from bedplate.model.durability import FilesystemPromise
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan
from bedplate.model.reason import reasons_of
from bedplate.model.visit import FlushCount, VisitRequest
from bedplate.plan.load import load_plan
from bedplate.visit.cuts import WRITER_NOT_ENDED, Recorded
from bedplate.visit.life import _missing_files
from bedplate.visit.recording import ToolEnded, ToolProcess, VisitContext
from bedplate.visit.server import ServerSite
from bedplate.workloads.power_cut.bench import subject_of

TEXT = """
name = "brickbase"
check_limit = "1 min"
[settings.sync]
levels = ["full", "some", "off"]
default = "full"
[settings.page_size]
levels = ["4 kB", "16 kB"]
[settings.wal]
kind = "switch"
[[promise]]
when = { sync = "full" }
class = "durable"
source = "README"
[[promise]]
when = { sync = "some" }
class = "bounded loss"
transactions = 2
source = "README"
[[promise]]
when = { sync = "off", wal = true }
class = "unsafe"
source = "README"
"""
PLAN = """
[canary]
enabled = false
[[filesystem]]
type = "ext4"
[engine]
path = "mine"
settings = { sync = { vary = ["full", "off"] }, page_size = "16 kB" }
[[workload]]
type = "power_cut"
engine = "own-engine"
"""
SYNCS_FLUSH = tuple(FlushCount("data", name, 8, 8) for name in ("appending", "overwriting", "logging"))
NO_SYNC_FLUSHES = tuple(FlushCount("data", name, 8, 0) for name in ("appending", "overwriting", "logging"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir(mode=0o755)
    (made / "engine.toml").write_text(TEXT)
    for name in ("writer", "checker"):
        (made / name).write_text("#!/bin/sh\n")
        (made / name).chmod(0o755)
    return made


def planned(directory: Path, text: str = PLAN) -> Plan:
    return load_plan(text, source="p.toml", directory=directory)


def refused(directory: Path, text: str = PLAN) -> str:
    with pytest.raises(PlanError) as caught:
        planned(directory, text)
    return "\n".join(caught.value.reasons)


def cells(directory: Path) -> list[Cell]:
    return list(planned(directory).cells())


def test_the_programs_are_told_what_was_asked_for_and_what_holds_else() -> None:
    description = read_description(TEXT)
    assert ("brickbase", 60.0) == (description.name, description.check_limit_s)
    told = description.options_for(Levels(page_size=16384, name="brickbase", programs="0" * 16, wal=True))
    assert ["--page_size=16384", "--sync=full", "--wal=true"] == list(options(told))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("name =", "nam =", "key 'nam' is not known"),
        ('"brickbase"', '"Brick base"', "name: allowed are small letters"),
        ('check_limit = "1 min"', 'check_limit = "1 h"', "check_limit: allowed is a time"),
        ('check_limit = "1 min"', 'writer = "../writer"', "writer: '../writer' lies outside of the folder"),
        ('check_limit = "1 min"', 'checker = "/bin/true"', "checker: '/bin/true' lies outside of the folder"),
        ("[settings.sync]", "[settings.seed]", "is none of name, programs, clients"),
        (
            'default = "full"',
            'default = "none"',
            "settings.sync.default: found 'none'; allowed is one of full",
        ),
        ('"4 kB", "16 kB"', '"4 kB", "many"', "settings.page_size.levels: found 'many'; allowed is a size"),
        (
            'levels = ["4 kB", "16 kB"]',
            'kind = "text"',
            "settings.page_size.kind: found 'text'; allowed: size",
        ),
        ('kind = "switch"', 'kind = "flag"', "settings.wal.kind: found 'flag'"),
        ('class = "durable"', 'class = "safe"', "promise[0].class: found 'safe'"),
        ('class = "durable"', 'class = "durable"\nms = 5', 'promise[0].ms: only of class = "bounded loss"'),
        ("transactions = 2", "transactions = 0", "promise[1].transactions: allowed is a whole number"),
        ('when = { sync = "some" }', "when = { synk = 1 }", "promise[1].when: setting 'synk' is not known"),
        ('source = "README"', 'sauce = "README"', "promise[0].source: missing"),
        ("[[promise]]", "[promise", "is no TOML"),
        ('check_limit = "1 min"', 'plant = "drop-all"', "plant: found 'drop-all'; allowed: drop-fsync"),
        ('check_limit = "1 min"', 'build = "make"', "build: allowed is a table"),
        ('check_limit = "1 min"', 'build = { make = "all" }', "build.key 'make' is not known"),
        (
            'check_limit = "1 min"',
            'build = { run = ["make all"] }',
            "build.run: allowed are lists of a program",
        ),
        ('check_limit = "1 min"', "build = { run = [[]] }", "build.run: allowed are lists of a program"),
        (
            'check_limit = "1 min"',
            'build = { fetch = "curl" }',
            "build.fetch: found 'curl'; allowed: cargo, go, pip",
        ),
        (
            'check_limit = "1 min"',
            'build = { keep = ["/etc"] }',
            "build.keep: '/etc' lies outside of the folder",
        ),
        ('check_limit = "1 min"', 'build = { needs = "gcc" }', "build.needs: allowed is a list of names"),
    ],
)
def test_what_is_wrong_in_an_engine_toml_is_named(before: str, after: str, said: str) -> None:
    assert before in TEXT
    with pytest.raises(PlanError) as caught:
        read_description(TEXT.replace(before, after))
    assert said in "\n".join(caught.value.reasons)


def test_a_cell_has_the_settings_and_what_programs_they_were(folder: Path) -> None:
    first, second = cells(folder.parent)
    assert {"sync": "full", "page_size": 16384, "name": "brickbase"}.items() <= first.cluster.settings.items()
    assert "off" == second.cluster.settings["sync"]
    assert 16384 == first.database_block_bytes
    assert "ext4-own-engine-name-brickbase-page-size-16384-sync-full" == first.slug
    (folder / "writer").write_text("#!/bin/sh\nexit 1\n")
    changed = cells(folder.parent)[0]
    assert first.id != changed.id
    (folder / "writer").write_text("#!/bin/sh\n")
    assert first.id == cells(folder.parent)[0].id


def test_a_study_keeps_what_decides_its_cells(folder: Path, tmp_path: Path) -> None:
    plan = planned(folder.parent)
    study = tmp_path / "study"
    for name, text in plan.files.items():
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).write_text(text)
    kept = planned(study)
    assert plan.digest == kept.digest
    assert (str(folder), None) == (plan.engines[0].folder, kept.engines[0].folder)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('path = "mine"\n', "", "settings: of which engine? path is missing"),
        ('path = "mine"', 'path = "yours"', "is no directory"),
        ("sync =", "synk =", "setting 'synk' is not known; did you mean sync?"),
        ('"16 kB"', '"8 kB"', "settings.page_size: allowed is one of 4096, 16384"),
        (PLAN[PLAN.index("[engine]") : PLAN.index("[[workload]]")], "", "engine.path: missing"),
    ],
)
def test_what_a_plan_cannot_ask_of_it(folder: Path, before: str, after: str, said: str) -> None:
    assert said in refused(folder.parent, PLAN.replace(before, after))


def test_a_folder_that_is_none_to_run_says_why(folder: Path) -> None:
    (folder / "checker").chmod(0o644)
    assert "may not be executed" in refused(folder.parent)
    (folder / "checker").unlink()
    assert "there is no" in refused(folder.parent)
    (folder / "checker").symlink_to("/bin/true")
    assert "is no regular file" in refused(folder.parent)
    (folder / "checker").unlink()
    (folder / "engine.toml").unlink()
    assert "engine.toml cannot be read" in refused(folder.parent)
    # Nobody writes to the other end, and it has none.
    os.mkfifo(folder / "engine.toml")
    assert "engine.toml cannot be read: it is no file" in refused(folder.parent)
    (folder / "engine.toml").unlink()
    (folder / "engine.toml").symlink_to("/dev/zero")
    assert "engine.toml cannot be read: it is no file" in refused(folder.parent)


def test_what_is_read_of_a_folder_has_bounds(folder: Path) -> None:
    (folder / "engine.toml").write_text(TEXT + "#" * 2**16)
    assert "engine.toml has more than 64 KiB" in refused(folder.parent)
    (folder / "engine.toml").write_text(TEXT)
    deep = folder
    for _ in range(1200):
        deep /= "d"
        deep.mkdir()
    assert "folders more than 20 deep" in refused(folder.parent)
    # shutil would call itself too often.
    subprocess.run(["rm", "-rf", folder / "d/d"], check=True)
    for number in range(1001):
        (folder / f"d/{number}").mkdir()
    assert "more than 1000 files or folders" in refused(folder.parent)


def test_a_folder_that_others_may_change_is_refused(folder: Path) -> None:
    (folder / "writer").chmod(0o757)
    assert "others may write to" in refused(folder.parent)
    (folder / "writer").chmod(0o755)
    folder.chmod(0o777)
    assert "chmod -R go-w" in refused(folder.parent)


def test_the_programs_are_copied_once_and_an_interpreter_that_is_not_there_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    (setup,) = planned(folder.parent).engines
    (path,) = ExternalPrograms().keep(setup).values()
    assert read_folder(Path(path)).digest == setup.clusters[0].settings["programs"]
    # One that is half removed is no copy, and whoever uses one says when.
    (Path(path) / "engine.toml").unlink()
    ExternalPrograms().keep(setup)
    assert read_folder(Path(path)).digest == setup.clusters[0].settings["programs"]
    os.utime(path, (0, 0))
    ExternalPrograms().keep(setup)
    assert Path(path).stat().st_mtime > 0
    (folder / "writer").write_text("#!/usr/bin/env python-of-nobody\n")
    (other,) = planned(folder.parent).engines
    with pytest.raises(RequirementMissing, match="no such interpreter here"):
        ExternalPrograms().keep(other)
    # A folder that was changed since the plan was read is another engine.
    (folder / "writer").write_text("#!/bin/sh\nexit 2\n")
    (third,) = planned(folder.parent).engines
    (folder / "writer").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(RequirementMissing, match="was changed while the plan was read"):
        ExternalPrograms().keep(third)


def test_a_node_that_does_not_see_the_copy_says_so(folder: Path) -> None:
    def missing(path: Path) -> list[str]:
        cell = cells(folder.parent)[0]
        request = SimpleNamespace(cell=cell, build=None, native_drivers={PROGRAMS_KEY: str(path)})
        return _missing_files(cast("VisitRequest", request))

    assert [] == missing(folder)
    (said,) = missing(folder.parent / "elsewhere")
    assert "elsewhere is not there" in said
    assert "the nodes of a cluster must see the same cache" in said


@pytest.mark.parametrize(
    ("settings", "flushes", "classes", "bound"),
    [
        ({}, SYNCS_FLUSH, ("durable", "durable"), None),
        ({}, NO_SYNC_FLUSHES, ("unsafe", "durable"), None),
        ({"sync": "some"}, SYNCS_FLUSH, ("bounded loss", "bounded loss"), 2),
        ({"sync": "off", "wal": True}, SYNCS_FLUSH, ("unsafe", "unsafe"), None),
        ({"sync": "off"}, SYNCS_FLUSH, ("unknown", "unknown"), None),
    ],
)
def test_the_class_is_the_authors_as_far_as_the_file_system_holds_it(
    settings: dict[str, Any], flushes: tuple[FlushCount, ...], classes: tuple[str, str], bound: int | None
) -> None:
    found = ExternalDurability(TEXT).declare(Levels(settings), {}, FilesystemPromise(flushes))
    assert classes == (found.volatile_cache, found.protected_cache)
    promise = read_description(TEXT).promise(Levels(settings))
    assert bound == (None if promise is None else promise.transactions)
    in_force = {item.name: str(item.effective) for item in ExternalDurability(TEXT).opened(Levels(settings))}
    waits = engine_model("own-engine").waits(Levels(settings), in_force)
    assert (promise is not None and promise.durability == "durable") == waits


def answer(**found: Any) -> str:
    return json.dumps({"clients": {"0": 5}, **found})


def test_what_a_checker_finds_is_detected_where_the_engine_complains_and_silent_else() -> None:
    found = judge_document(answer(wrong=["page 3"], refused=["locked"]), {0: 5}, oracle_s=None)
    assert ({0: 5}, ("locked",), ("page 3",)) == (found.present, found.detected, found.silent)
    # One transaction more than was acknowledged may be there: it was under way.
    assert () == judge_document(answer(), {0: 4}, oracle_s=None).silent
    assert "has transaction 5" in judge_document(answer(), {0: 3}, oracle_s=None).silent[0]


def test_an_engine_that_refuses_its_files_need_not_name_what_it_cannot_read() -> None:
    found = judge_document('{"refused": ["the manifest is torn"]}', {0: 5}, oracle_s=None)
    assert (None, ("the manifest is torn",), ()) == (found.present, found.detected, found.silent)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"wrong": [], "refused": []}', "the key 'clients' is missing"),
        ('{"clients": {"0": -1}}', "no number of a transaction"),
        ('{"clients": {}, "broken": []}', "'broken' is no key of an answer"),
    ],
)
def test_what_an_answer_lacks_is_named(text: str, why: str) -> None:
    with pytest.raises(OutputNotUnderstood) as error:
        judge_document(text, {0: 5}, oracle_s=None)
    assert f"the checker's answer cannot be read ({why})" in str(error.value)
    assert text in str(error.value)


@pytest.mark.parametrize("source", ["writer.rs", "writer.c", "writer.go"])
def test_a_template_that_was_not_compiled_says_so(folder: Path, source: str) -> None:
    (folder / "writer").rename(folder / source)
    with pytest.raises(PlanError, match=rf"there is no .*writer yet; compile it first, of {source}"):
        read_folder(folder)


def test_a_plan_that_names_sources_is_sent_to_what_builds_them(folder: Path) -> None:
    (folder / "writer").unlink()
    with (folder / "engine.toml").open("a") as file:
        file.write('\n[build]\nrun = [["make"]]\n')
    with pytest.raises(PlanError, match=r"there is no .*/writer; `power-cut try .*` builds it"):
        read_folder(folder)
    assert (("make",),) == getattr(read_folder(folder, may_lack_all=True).description.build, "run", None)


def test_a_plant_that_nobody_put_into_the_folder_is_refused(folder: Path) -> None:
    text = (folder / "engine.toml").read_text()
    (folder / "engine.toml").write_text(f'plant = "drop-fsync"\n{text}')
    with pytest.raises(PlanError, match=r"plant: `power-cut try --plant` writes this key"):
        read_folder(folder)
    (folder / "planted_sync.so").write_bytes(b"")
    assert f"{read_description(text).name}.drop-fsync" == read_folder(folder).description.name


@pytest.fixture
def readable_place() -> Iterator[Path]:
    with TemporaryDirectory(dir="/dev/shm") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.mark.parametrize(
    "shebang", ["#!{place}", "#!/usr/bin/env -S {place} -u", "#!/usr/bin/env own-interpreter"]
)
def test_an_interpreter_that_the_account_without_rights_may_not_read_is_named(
    folder: Path, tmp_path: Path, readable_place: Path, monkeypatch: pytest.MonkeyPatch, shebang: str
) -> None:
    """As one below /root, and one behind a link that leads there."""
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    # Folders of pytest's are root's alone.
    own = readable_place
    (own / "bin").mkdir()
    interpreter = own / "bin" / "own-interpreter"
    interpreter.write_text("#!/bin/sh\n")
    interpreter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{own / 'bin'}:/usr/bin:/bin")
    (folder / "writer").write_text(f"{shebang.format(place=interpreter)}\n")
    (engine,) = planned(folder.parent).engines
    ExternalPrograms().keep(engine)
    own.chmod(0o700)
    with pytest.raises(RequirementMissing, match=f"an account without rights, which may not read {own}"):
        ExternalPrograms().keep(engine)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "ok",
            "[]",
            "{}",
            "null",
            '{"clients": []}',
            '{"clients": {"null": 1}}',
            '{"clients": {"0": null}}',
        ),
        *('{"clients": {"0": -1}}', '{"clients": {"0": true}}', answer(wrong="page 3"), answer(wrong=[3])),
        *(answer(broken=["page 3"]), answer() + answer(), "[" * 100_000),
    ],
)
def test_an_answer_that_cannot_be_read_is_no_damage(text: str) -> None:
    with pytest.raises(OutputNotUnderstood, match="one JSON object"):
        judge_document(text, {0: 5}, oracle_s=None)


@pytest.mark.parametrize(
    ("accelerator", "load", "limit_s"),
    [
        (None, 0.5, 60.0),
        ("kvm", 8.0, 60.0),
        ("tcg", 0.5, 600.0),
        (None, 24.0, 180.0),
        (None, 8000.0, 600.0),
    ],
)
def test_an_emulated_or_a_busy_processor_gives_a_checker_more_time_than_its_author_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, accelerator: str | None, load: float, limit_s: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    given: list[float] = []

    def run(argv: tuple[str, ...], *, timeout_s: float, **_: object) -> None:
        given.append(timeout_s)
        raise CommandFailed("too late", argv=argv, status=None, output="")

    provenance = {} if accelerator is None else {"accelerator": accelerator}
    context = SimpleNamespace(
        engine_settings=Levels(),
        native_drivers={PROGRAMS_KEY: str(folder)},
        request=SimpleNamespace(
            build=None,
            provenance=provenance,
            cell=SimpleNamespace(cluster=SimpleNamespace(configuration=None)),
        ),
        account=Account("bedplate", 998, 997),
    )
    subject = subject_of(cast("VisitContext", context), "own-engine", POWER_CUT)
    site = SimpleNamespace(
        data_directory=folder, account=Account("me", 1, 1), commands=SimpleNamespace(run=run)
    )
    found = POWER_CUT.examine(cast("ServerSite", site), subject, {0: 3})
    assert [limit_s] == given
    assert (f"the checker did not end within {limit_s:g} s, by check_limit of engine.toml",) == found.detected


def test_a_status_above_128_is_a_signal() -> None:
    assert "was ended by SIGSEGV" == how_it_ended(139) == how_it_ended(-11)
    assert "ended with status 3" == how_it_ended(3)
    assert "ended with status 255" == how_it_ended(255)


def test_a_writer_is_halted_while_its_part_of_the_log_is_used_up_and_told_to_end_where_it_is_full() -> None:
    marks, pause, full = [0], [0.0], [False]
    sent: list[int] = []
    begun: list[int] = []
    setup = SimpleNamespace(
        mark_count=lambda: marks[0],
        pace=lambda duration_s: lambda: pause[0] * duration_s,
        is_log_nearly_full=lambda: full[0],
    )
    pacer = _Pacer(
        cast("Recorded", setup),
        cast("ToolProcess", SimpleNamespace(signal=sent.append)),
        marks_before=0,
        duration_s=60,
        start_companion=lambda: begun.append(len(sent)),
        name="brickbase",
    )

    def look(*, marks_now: int, pause_now: float = 0.0, full_now: bool = False) -> list[int]:
        marks[0], pause[0], full[0] = marks_now, pause_now, full_now
        # Whatever is looked at, the tool is not ended by its caller.
        assert not pacer.look()
        return sent

    # Before its first mark it prepares: nobody writes beside it, and it has the whole log.
    assert [] == look(marks_now=0, pause_now=1.0) == begun
    assert [] == look(marks_now=1)
    assert [0] == begun
    halted = [signal.SIGSTOP, signal.SIGCONT]
    assert halted[:1] == look(marks_now=2, pause_now=1.0) == look(marks_now=2, pause_now=1.0)
    assert halted == look(marks_now=2)
    # A halted one would not hear it.
    look(marks_now=2, pause_now=1.0)
    assert [*halted, *halted, signal.SIGTERM] == look(marks_now=2, pause_now=1.0, full_now=True)
    assert pacer.log_was_full
    assert pacer.was_told


def ending_pacer(monkeypatch: pytest.MonkeyPatch, *, emulated: bool) -> Callable[[float], bool]:
    """Looks so many seconds after a writer was told to end."""
    setup = SimpleNamespace(mark_count=lambda: 1, pace=lambda _: lambda: 0.0, is_log_nearly_full=lambda: True)
    now = [100.0]
    monkeypatch.setattr(oracle, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    pacer = _Pacer(
        cast("Recorded", setup),
        cast("ToolProcess", SimpleNamespace(signal=lambda _: None)),
        marks_before=0,
        duration_s=60,
        start_companion=lambda: None,
        name="brickbase",
        emulated=emulated,
    )
    assert not pacer.look()
    assert pacer.was_told

    def after(seconds: float) -> bool:
        now[0] = 100.0 + seconds
        return pacer.look()

    return after


def test_a_writer_has_as_much_longer_to_end_as_its_machine_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ending_pacer(monkeypatch, emulated=True)(99.0)
    with pytest.raises(BedplateError, match="did not end within 100 s") as caught:
        ending_pacer(monkeypatch, emulated=True)(101.0)
    assert [WRITER_NOT_ENDED] == [reason.code for reason in reasons_of(caught.value)]
    with pytest.raises(BedplateError, match="did not end within 10 s"):
        ending_pacer(monkeypatch, emulated=False)(11.0)


@pytest.mark.parametrize("status", [-signal.SIGKILL, 128 + signal.SIGKILL])
def test_a_writer_that_the_kernel_killed_has_not_failed(tmp_path: Path, status: int) -> None:
    programs = AuthorPrograms(tmp_path, cast("Any", SimpleNamespace(name="brickbase")), Levels())
    ended = ToolEnded(status, 0.0, "was killed")
    with pytest.raises(KilledFromOutside):
        programs.require_success(ended, was_told=False, data=tmp_path, room="")
