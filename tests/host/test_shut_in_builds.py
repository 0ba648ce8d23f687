"""Somebody's own PostgreSQL: really shut in while it is built, and a commit of the real one with a planted sleep measured in a visit."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository
from tests.support.sources.toy_postgresql import toy_postgresql
from tests.support.studies.study_lab import SOURCES, Lab
from tests.support.tools.processes import every_process

from bedplate.engines.postgresql import builds
from bedplate.engines.postgresql.builds import (
    BuildSpec,
    RecipeWork,
    compile_postgresql,
    ensure_build,
    ensure_source,
)
from bedplate.errors import BuildFailed
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.git import GitRevisions
from bedplate.host.process import wait_until
from bedplate.plan.load import load_plan

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

_XACT = "src/backend/access/transam/xact.c"
_STATE = "\ts->state = TRANS_COMMIT;\n"
_SLEEP_MS = 50


@pytest.fixture
def place() -> Iterator[Path]:
    # Not tmp_path: its parents are closed to every account but root.
    with tempfile.TemporaryDirectory(prefix="bedplate-test-trees-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def _build(tree: Path, place: Path, *, recipe: Callable[[RecipeWork], None] = compile_postgresql) -> None:
    text = f'[[filesystem]]\ntype = "ext4"\n[postgresql]\nsource = {{ tree = "{tree}", commit = "master" }}\n'
    plan = load_plan(text, source="p", directory=place, revisions=GitRevisions())
    ensure_build(
        BuildSpec.of(plan.builds[0]),
        cache_directory=place / "cache",
        commands=Commands(),
        progress=lambda _: None,
        recipe=recipe,
        sources=plan.sources,
    )


def test_a_build_of_somebodys_own_has_no_rights_no_network_and_writes_nowhere_else(place: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    reached: list[object] = []
    thread = threading.Thread(target=lambda: reached.append(listener.accept()), daemon=True)
    thread.start()
    open_to_all = place / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    tree = toy_postgresql(place / "src")
    configure = (tree / "configure").read_text()
    port = listener.getsockname()[1]
    evil = (
        f"#!/bin/bash\nid -u > who\n(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>> said\n"
        f"touch {open_to_all}/planted ~/planted /root/planted {place}/cache/planted ../source/../../planted 2>> said\n"
        "sleep 1000 &\n"
    )
    commit(tree, "Evil", {"configure": configure.replace("#!/bin/sh\n", evil) + "cat who said >&2\nfalse\n"})
    with pytest.raises(BuildFailed) as found:
        _build(tree, place)
    (log,) = (place / "cache/builds").glob("failed-*.log")
    said = log.read_text()
    assert re.search(r"^(?!0$)\d+$", said, re.MULTILINE), said
    assert re.search(r"Address family not supported|Network is unreachable|Connection refused", said), said
    assert [] == reached
    assert [] == list(open_to_all.iterdir())
    assert not (place / "cache/planted").exists()
    assert not (place / "cache/builds/planted").exists()
    assert "failed; the whole output is in" in str(found.value)
    listener.close()


def test_what_is_installed_is_roots_and_runs_as_nobody_else(place: Path) -> None:
    tree = toy_postgresql(place / "src")
    more = "\tln -s /etc/shadow $(DESTDIR)$prefix/bin/shadow\n\tchmod 4755 $(DESTDIR)$prefix/bin/postgres\n".replace(
        "$(DEST", "\\$(DEST"
    )
    text = (tree / "configure").read_text()
    before = (Path("/etc/shadow").stat().st_mode, Path("/etc/shadow").stat().st_uid)
    commit(
        tree,
        "Setuid",
        {"configure": text.replace("prefix/bin/postgres\nEND", f"prefix/bin/postgres\n{more}END")},
    )
    _build(tree, place)
    (made,) = (place / "cache/builds").glob("postgresql-*/bin")
    assert {0} == {os.lstat(path).st_uid for path in made.rglob("*")}
    assert 0o755 == (made / "postgres").stat().st_mode & 0o7777
    assert (made / "shadow").is_symlink()
    assert before == (Path("/etc/shadow").stat().st_mode, Path("/etc/shadow").stat().st_uid)


def test_a_stage_that_is_a_link_elsewhere_is_refused(place: Path) -> None:
    tree = toy_postgresql(place / "src")
    victim = place / "victim"
    victim.mkdir()
    text = (tree / "configure").read_text()
    first = place.parts[1]
    evil = f"install:\n\tln -s {victim} \\$(DESTDIR)/{first}; true\n".replace("install:\n", "", 1)
    commit(
        tree,
        "Link",
        {"configure": re.sub(r"install:\n\tmkdir.*\n\tcp postgres.*\n", lambda _: f"install:\n{evil}", text)},
    )
    with pytest.raises(BuildFailed, match="is no folder after the build"):
        _build(tree, place)
    assert [] == list(victim.iterdir())


def test_a_killed_build_leaves_no_process_and_is_made_by_the_next_start(place: Path) -> None:
    tree = toy_postgresql(place / "src")
    text = (tree / "configure").read_text()
    commit(tree, "Slow", {"configure": text.replace("set -e\n", "set -e\nsleep 54321\n")})
    program = (
        "import sys; from pathlib import Path; from tests.host.test_shut_in_builds import _build; "
        "_build(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tree), str(place)],
        env={**os.environ, "PYTHONPATH": f"{SOURCES}:{SOURCES / 'src'}"},
        cwd=SOURCES,
    )
    assert wait_until(lambda: bool(_sleepers()), deadline_s=300)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_until(lambda: not _sleepers(), deadline_s=300)
    (left,) = (place / "cache/builds").glob(".work-*")
    assert (left / "objects").is_dir()
    _build(tree, place, recipe=_install_a_script)
    assert [] == list((place / "cache/builds").glob(".work-*"))
    (made,) = (place / "cache/builds").glob("postgresql-*")
    assert (made / "bin/postgres").is_file()


def _install_a_script(work: RecipeWork) -> None:
    server = work.staged_prefix / "bin/postgres"
    server.parent.mkdir(parents=True)
    server.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 19devel'\n")
    server.chmod(0o755)


def _sleepers() -> list[int]:
    return [process.pid for process in every_process() if process.arguments[:2] == ("sleep", "54321")]


@pytest.fixture
def history(place: Path) -> Path:
    """PostgreSQL's release, then a commit whose transactions sleep, then one that cannot be configured."""
    commands = Commands()
    source = ensure_source(
        "18", cache_directory=cache_directory(), commands=commands, progress=lambda _: None
    )
    release = builds.unpacked_tree(source, progress=lambda _: None)
    tree = repository(place / "src" / "postgres")
    commands.run(["cp", "-a", "--no-preserve=ownership", f"{release}/.", str(tree)], timeout_s=600)
    # The same hashes each time, so that the build is found again.
    commit(tree, f"PostgreSQL {source.version}", {})
    text = (tree / _XACT).read_text()
    assert 1 <= text.count(_STATE)
    planted = text.replace(_STATE, f"{_STATE}\tpg_usleep({_SLEEP_MS * 1000}L);\n", 1)
    commit(tree, "Think before each commit", {_XACT: planted})
    commit(tree, "Break everything", {"configure": "#!/bin/sh\necho 'no configuration today' >&2\nexit 1\n"})
    return tree


def test_a_planted_sleep_is_measured_and_a_commit_that_cannot_be_built_fails_alone(
    lab: Lab, history: Path
) -> None:
    plan = lab.plan(
        (
            'version = "18"',
            f'source = {{ tree = "{history}", commit = {{ vary = ["master~1", "master"] }} }}',
        ),
        ('script = "read-only"\nclients = 2', 'script = "read-write"\nclients = 1'),
        ("rate = 1000\n", ""),
        ('duration = "1 s"', 'duration = "5 s"'),
    )
    assert "Think before each commit" in lab.call("plan", plan)
    said = lab.run(plan, status=3)
    assert "no configuration today" in said
    assert "1 visit completed, 0 failed" in said
    assert re.search(r"1 visit of PostgreSQL .* Break everything, 8 kB blocks did not run", said)
    (completed,) = lab.visits().values()
    digits = git(history, "rev-parse", "--short=12", "master~1").strip()
    assert f"{digits} Think before each commit" == completed.cell.build.source_commit
    (path,) = (lab.study / "visits").glob("*/*/1.1/runs/*/run.json")
    figures = json.loads(path.read_text())["figures"]
    (tps,) = (each["value"] for each in figures if each["metric"] == "tps" and each["phase"] == "measure")
    # One client, and a sleep in each of its transactions.
    assert 0 < tps <= 1000 / _SLEEP_MS
    assert "Think before each commit" in lab.call("show", lab.study)
    assert any(digits in note.read_text() for note in (lab.study / "plan/sources").iterdir())
    # The branch moves on, and the study stays with what it has.
    commit(history, "Later", {"later": ""})
    assert "no configuration today" in lab.run(plan, status=3)
    assert 1 == len(lab.visits())
    page = lab.base / "report.html"
    lab.call("report", lab.study, "-o", page)
    assert "Think before each commit" in page.read_text()
