"""The contributor's check, run on a copy whose environment is a stand-in that says what it was asked."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

# Prints its arguments; fails, or ends as pytest does, when a word of FAILING or EMPTY is among them.
_STAND_IN = """#!/bin/sh
echo "called: $*"
for word in ${FAILING-}; do case "$*" in *"$word"*) exit 1 ;; esac; done
for word in ${EMPTY-}; do case "$*" in *pytest*"$word"*) exit 5 ;; esac; done
"""
_LANES = ("host tests", "guests, further workloads", "file systems, fleet, cuts, studies")
_TOOLS = ("sh", "cat", "cmp", "date", "dirname", "env", "readlink", "mkdir", "mktemp", "rm", "tail")
_HOST_TOOLS = (
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "mkfs.jfs",
    "mkreiserfs",
    "mkfs.nilfs2",
    "mkfs.f2fs",
    "mdb_stat",
    "bonnie++",
    "fio",
    "mkntfs",
    "losetup",
    "fincore",
    "git",
    "bison",
    "flex",
    "m4",
    "perl",
    "gcc",
    "make",
)
_SLURM_TOOLS = ("slurmctld", "slurmd", "sbatch", "munged")
_MORE_HOST_TOOLS = ("pkg-config", "bzip2", "xz", "qemu-system-x86_64", *_SLURM_TOOLS)
_HOST_FILES = (
    "/usr/include/stdio.h",
    "/usr/include/liburing.h",
    "/usr/include/unicode/ucol.h",
    "/usr/include/lz4.h",
    "/usr/include/zstd.h",
    "/usr/include/openssl/ssl.h",
    "/usr/include/libxml2",
    "/usr/include/uuid/uuid.h",
    "/usr/include/lmdb.h",
    "/usr/include/sqlite3.h",
    "/etc/ssl/certs/ca-certificates.crt",
)


@dataclass(frozen=True)
class Bench:
    """A copy of the check with a PATH that holds only what the test puts there."""

    root: Path
    tools: Path

    def tool(self, name: str, text: str = "exit 0") -> None:
        (self.tools / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (self.tools / name).chmod(0o755)

    def check(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "check"), *arguments],
            env={"PATH": str(self.tools), "BEDPLATE_CACHE": str(self.root / "cache"), **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Bench:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in _TOOLS:
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    root = tmp_path / "checkout"
    (root / "requirements").mkdir(parents=True)
    shutil.copy2(repository / "check", root / "check")
    for name in ("environment.sh", "development.txt"):
        shutil.copy2(repository / "requirements" / name, root / "requirements" / name)
    environment = root / "cache/environments/development-stand-in"
    (environment / "bin").mkdir(parents=True)
    for name in ("python", "lint-imports", "oxfmt"):
        (environment / "bin" / name).write_text(_STAND_IN, encoding="utf-8")
        (environment / "bin" / name).chmod(0o755)
    shutil.copy2(root / "requirements/development.txt", environment / "requirements.txt")
    (environment / "complete").write_text("/usr/bin/python3\n", encoding="utf-8")
    made = Bench(root, tools)
    made.tool("id", "echo 1000")
    for name in ("chromium", "soffice", "libsclo.so", "pyuno.so"):
        made.tool(name)
    made.tool("tsc", 'case "${FAILING-}" in *tsc*) exit 1 ;; esac')
    return made


def _table(output: str) -> dict[str, tuple[str, str]]:
    """Step -> (outcome, remark) from the table at the end."""
    lines = output.splitlines()
    start = max(number for number, line in enumerate(lines) if line.startswith("outcome"))
    rows = {}
    for line in lines[start + 1 :]:
        outcome, rest = line[:8].strip(), line[8:].split(maxsplit=1)[1]
        step, _, remark = rest.partition(": ")
        rows[step] = (outcome, remark)
    return rows


def test_every_step_runs_and_the_table_says_so(bench: Bench) -> None:
    ended = bench.check()
    assert {step: outcome for step, (outcome, _) in _table(ended.stdout).items()} == {
        "format": "passed",
        "format of the script": "passed",
        "lint": "passed",
        "types": "passed",
        "imports": "passed",
        "types of the script": "passed",
        "unit, golden and meta tests": "passed",
        **dict.fromkeys(_LANES, "skipped"),
        "browser tests": "passed",
        "office tests": "passed",
    }
    assert ended.returncode == 0


def test_steps_run_after_a_failed_one(bench: Bench) -> None:
    ended = bench.check(FAILING="ruff mypy")
    rows = _table(ended.stdout)
    assert [rows[step][0] for step in ("format", "lint", "types", "imports")] == ["failed"] * 3 + ["passed"]
    assert rows["unit, golden and meta tests"] == ("passed", "")
    assert ended.returncode == 1


@pytest.mark.parametrize(
    "word", ["ruff", "assets", "lint-imports", "mypy", "tsc", "not", "browser", "office"]
)
def test_any_failing_step_fails_the_check(bench: Bench, word: str) -> None:
    # Tools of their own names are known by their arguments; every other step is called through python.
    called = "imports" if word == "lint-imports" else word
    assert bench.check(FAILING=called).returncode == 1


def test_without_its_compiler_the_script_is_not_checked_which_a_fast_check_may_leave(bench: Bench) -> None:
    (bench.tools / "tsc").unlink()
    ended = bench.check()
    assert _table(ended.stdout)["types of the script"] == (
        "not run",
        "missing: node-typescript (--yes installs as root)",
    )
    assert ended.returncode == 3
    ended = bench.check("--fast")
    assert _table(ended.stdout)["types of the script"] == (
        "skipped",
        "--fast, and node-typescript is missing",
    )
    assert ended.returncode == 0


def test_host_tests_without_root_are_skipped_visibly(bench: Bench) -> None:
    ended = bench.check()
    assert (
        "skipped: they make loop devices, mount and start servers, which needs root: sudo ./check"
        in ended.stdout
    )
    for step in _LANES:
        assert _table(ended.stdout)[step] == ("skipped", "needs root: sudo ./check")
    assert "-m host" not in ended.stdout


def _give_host_tools(bench: Bench) -> None:
    absent = [path for path in _HOST_FILES if not Path(path).exists()]
    if absent:
        pytest.skip(f"this machine lacks {', '.join(absent)}, which are looked for by their paths")
    for name in (*_HOST_TOOLS, *_MORE_HOST_TOOLS):
        bench.tool(name)


def test_root_runs_the_host_tests(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    ended = bench.check()
    assert _table(ended.stdout)["host tests"] == ("passed", "")
    for asked in ("not second_lane and not third_lane", "second_lane", "third_lane"):
        assert f"--durations=10 -m host and {asked} tests/host" in ended.stdout
    assert ended.returncode == 0


def test_the_host_tests_run_beside_all_others_and_are_shown_after_them(bench: Bench) -> None:
    """The first step waits until the lanes have begun, which it would not see if they came after it."""
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    begun = bench.root / "begun"
    os.mkfifo(begun)
    python = bench.root / "cache/environments/development-stand-in/bin/python"
    python.write_text(
        f"""#!/bin/sh
case "$*" in
    *"host and not second_lane"*) echo host >{begun}; echo "the host tests" ;;
    *"host and second_lane"*) echo "the guests" ;;
    *"host and third_lane"*) echo "the studies" ;;
    *"ruff format"*) cat {begun} ;;
    *"not host"*) echo "the unit tests" ;;
    *) echo "the others" ;;
esac
""",
        encoding="utf-8",
    )
    ended = bench.check()
    assert ended.returncode == 0
    assert ended.stdout.index("the unit tests") < ended.stdout.rindex("the others")
    assert ended.stdout.rindex("the others") < ended.stdout.index("the host tests")
    assert ended.stdout.index("the host tests") < ended.stdout.index("the guests")
    assert ended.stdout.index("the guests") < ended.stdout.index("the studies")
    assert _table(ended.stdout)["host tests"] == ("passed", "")


def test_failing_host_tests_fail_the_check_when_the_others_passed(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    python = bench.root / "cache/environments/development-stand-in/bin/python"
    python.write_text('#!/bin/sh\ncase "$*" in *"-m host"*) exit 1 ;; esac\n', encoding="utf-8")
    ended = bench.check()
    assert ended.returncode == 1
    assert _table(ended.stdout)["host tests"] == ("failed", "exit 1")
    assert _table(ended.stdout)["browser tests"] == ("passed", "")


def test_an_interrupted_check_waits_until_the_host_tests_have_given_back(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    begun, shown = bench.root / "begun", bench.root / "shown"
    os.mkfifo(begun)
    os.mkfifo(shown)
    # ^C reaches what shows the output as well.
    tail = (bench.tools / "tail").readlink()
    (bench.tools / "tail").unlink()
    bench.tool("tail", f'[ ! -p "{shown}" ] || {{ : >"{shown}" && rm "{shown}"; }}\nexec {tail} "$@"')
    python = bench.root / "cache/environments/development-stand-in/bin/python"
    # The host tests hear ^C as pytest does under tests/conftest.py, and need a while to give back.
    python.write_text(
        f"""#!{sys.executable}
import signal, sys, threading
if "host and not second_lane and not third_lane" in sys.argv:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        open({str(begun)!r}, "w").close()
        threading.Event().wait(60)
    except KeyboardInterrupt:
        threading.Event().wait(0.5)
        print("given back", flush=True)
        sys.exit(2)
""",
        encoding="utf-8",
    )
    check = subprocess.Popen(
        [str(bench.root / "check")],
        env={"PATH": str(bench.tools), "BEDPLATE_CACHE": str(bench.root / "cache")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    begun.read_text()
    shown.read_text()
    os.killpg(check.pid, signal.SIGINT)
    output, _ = check.communicate(timeout=60)
    assert check.returncode == 130
    assert "given back" in output
    assert _table(output)["host tests"] == ("failed", "exit 2")


def test_without_slurm_it_is_named_and_the_other_host_tests_run(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    (bench.tools / "slurmctld").unlink()
    ended = bench.check()
    assert "the fleet tests need system packages that are missing: slurmctld" in ended.stderr
    assert _table(ended.stdout)["host tests"] == ("passed", "")


def test_missing_packages_are_named_and_exit_3(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    (bench.tools / "chromium").unlink()
    ended = bench.check()
    outcome, remark = _table(ended.stdout)["host tests"]
    assert outcome == "not run"
    assert {"xfsprogs", "btrfs-progs", "e2fsprogs", "bison", "flex", "perl", "gcc", "make"} <= set(
        remark.split()
    )
    assert _table(ended.stdout)["browser tests"][0] == "not run"
    assert "the browser tests need system packages that are missing: chromium" in ended.stderr
    assert _table(ended.stdout)["office tests"] == ("passed", "")
    assert ended.returncode == 3


@pytest.mark.parametrize(
    ("gone", "package"), [("libsclo.so", "libreoffice-calc-nogui"), ("pyuno.so", "python3-uno")]
)
def test_a_part_of_libreoffice_that_is_missing_is_named(bench: Bench, gone: str, package: str) -> None:
    (bench.tools / gone).unlink()
    ended = bench.check()
    assert _table(ended.stdout)["office tests"][0] == "not run"
    assert f"the office tests need system packages that are missing: {package}\n" in ended.stderr
    assert ended.returncode == 3


def test_without_libreoffice_both_of_its_packages_are_named(bench: Bench) -> None:
    (bench.tools / "soffice").unlink()
    assert "missing: libreoffice-calc-nogui python3-uno\n" in bench.check().stderr


def test_a_failure_weighs_more_than_a_missing_package(bench: Bench) -> None:
    (bench.tools / "chromium").unlink()
    assert bench.check().returncode == 3
    assert bench.check(FAILING="mypy").returncode == 1


@pytest.mark.parametrize("consent", [{"arguments": ["--yes"]}, {"environment": {"CI": "true"}}])
def test_root_installs_with_consent_after_an_update(bench: Bench, consent: dict[str, object]) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    (bench.tools / "mkfs.xfs").unlink()
    # The stand-in "installs" only what its index was updated for.
    made = f": > '{bench.tools}/mkfs.xfs'; /bin/chmod 755 '{bench.tools}/mkfs.xfs'"
    bench.tool("apt-get", f'echo "apt-get $*"\n[ "$1" = update ] || {{ {made}; }}')
    arguments, environment = consent.get("arguments", []), consent.get("environment", {})
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    ended = bench.check(*arguments, **environment)
    log = bench.root / "cache/packages.log"
    assert log.read_text().splitlines() == [
        "apt-get update",
        "apt-get install --yes --no-install-recommends xfsprogs",
    ]
    # Without a terminal the tool's own lines are kept, not shown.
    assert "apt-get" not in ended.stderr.partition("installing xfsprogs")[2]
    assert f"goes to {log}" in ended.stderr
    assert _table(ended.stdout)["host tests"] == ("passed", "")


def test_what_the_package_tool_says_at_its_failure_is_shown(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    (bench.tools / "mkfs.xfs").unlink()
    lines = "\n".join(f"echo line {number}" for number in range(1, 101))
    bench.tool("apt-get", f'[ "$1" = update ] && exit 100\n{lines}\necho "E: no space left" >&2\nexit 100')
    ended = bench.check("--yes")
    assert ended.returncode == 3
    assert "apt-get update failed; trying with the package lists at hand" in ended.stderr
    shown = ended.stderr.splitlines()
    assert "E: no space left" in shown
    assert "line 100" in shown
    assert "line 1" not in shown
    assert "installing xfsprogs failed; the messages are above" in ended.stderr
    assert "line 1\n" in (bench.root / "cache/packages.log").read_text()


def test_a_log_that_cannot_be_written_hides_nothing(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    _give_host_tools(bench)
    (bench.tools / "mkfs.xfs").unlink()
    (bench.root / "cache/packages.log").mkdir()
    bench.tool("apt-get", 'echo "the tool says: $*"; exit 100')
    ended = bench.check("--yes")
    shown = ended.stderr
    assert ended.returncode == 3
    assert "the tool says: install --yes --no-install-recommends xfsprogs\n" in shown
    assert "goes to" not in shown


def test_nothing_is_installed_without_consent(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    bench.tool("apt-get", 'echo "apt-get $*"')
    ended = bench.check()
    assert not [line for line in ended.stderr.splitlines() if line.startswith("apt-get")]
    assert "this installs them:  apt-get update && apt-get install" in ended.stderr


def test_bytecode_is_kept_beside_the_other_caches_whatever_the_caller_wants(bench: Bench) -> None:
    python = bench.root / "cache/environments/development-stand-in/bin/python"
    python.write_text(
        '#!/bin/sh\necho "called: $PYTHONPYCACHEPREFIX, ${PYTHONDONTWRITEBYTECODE-written}"\n',
        encoding="utf-8",
    )
    passing_files = bench.root / "tmp"
    kept = bench.root / "cache/check/bytecode/kept"
    passing = Path(f"{kept.parent}{passing_files}/copy")
    for folder in (kept, passing, passing_files):
        folder.mkdir(parents=True)
    ended = bench.check("--fast", PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(passing_files))
    assert f"called: {kept.parent}, written" in ended.stdout
    assert (True, False) == (kept.exists(), passing.exists())


def test_documents_are_written_and_nothing_is_checked(bench: Bench) -> None:
    ended = bench.check("--documents")
    assert (0, "called: -m bedplate.cli.documents docs\n") == (ended.returncode, ended.stdout)


def test_fast_leaves_host_browser_and_office_tests_out(bench: Bench) -> None:
    bench.tool("id", "echo 0")
    ended = bench.check("--fast")
    for half in ("first", "second"):
        assert _table(ended.stdout)[f"unit, golden and meta tests, {half} half"] == ("passed", "")
    assert _table(ended.stdout)["host tests"] == ("skipped", "--fast")
    assert _table(ended.stdout)["browser tests"] == ("skipped", "--fast")
    assert _table(ended.stdout)["office tests"] == ("skipped", "--fast")
    assert ended.returncode == 0


def test_arguments_after_two_dashes_go_to_pytest(bench: Bench) -> None:
    ended = bench.check("--fast", "--", "-k", "a b*c", "--lf")
    assert "-m not host and not browser and not office -k a b*c --lf" in ended.stdout
    assert "mypy -k" not in ended.stdout


def test_finding_no_test_fails_unless_the_caller_narrowed_it(bench: Bench) -> None:
    whole = bench.check("--fast", EMPTY="not")
    for half in ("first", "second"):
        assert _table(whole.stdout)[f"unit, golden and meta tests, {half} half"] == (
            "failed",
            "no test was found",
        )
    assert whole.returncode == 1
    narrowed = bench.check("--fast", "--", "-k", "x", EMPTY="not")
    assert _table(narrowed.stdout)["unit, golden and meta tests"][0] == "none"
    assert narrowed.returncode == 0


@pytest.mark.parametrize("arguments", [["--slow"], ["--limit"], ["--limit", "soon"], ["tests/unit"]])
def test_a_wrong_call_exits_2_before_anything_runs(bench: Bench, arguments: list[str]) -> None:
    ended = bench.check(*arguments)
    assert ended.returncode == 2
    assert "called:" not in ended.stdout


def test_help_needs_nothing(bench: Bench) -> None:
    shutil.rmtree(bench.root / "cache")
    ended = bench.check("--help")
    assert ended.returncode == 0
    assert "usage: ./check" in ended.stdout


def test_a_session_ends_in_order_when_the_time_is_over(repository: Path, tmp_path: Path) -> None:
    shutil.copy2(repository / "tests/conftest.py", tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n host: x\n browser: x\n", encoding="utf-8")
    (tmp_path / "test_endless.py").write_text(
        "import pytest, signal, threading\n"
        "@pytest.fixture\n"
        "def mounted():\n    yield\n    print('given back')\n"
        "def test_endless(mounted):\n"
        # What is left of the time runs out here, however long the start of pytest took.
        "    assert 3000 < signal.setitimer(signal.ITIMER_REAL, 0.01)[0] <= 3600\n"
        "    threading.Event().wait(300)\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "BEDPLATE_CHECK_DEADLINE": str(time.time() + 3600)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ended.returncode == 1
    assert "the time limit of ./check is over" in ended.stdout
    assert "given back" in ended.stdout


def test_no_test_lies_where_no_step_looks(repository: Path) -> None:
    looked_at = {"unit", "meta", "host", "browser", "office"}
    text = (repository / "check").read_text(encoding="utf-8")
    assert [] == [folder for folder in looked_at if f"tests/{folder}" not in text]
    tests = [path.relative_to(repository / "tests") for path in (repository / "tests").rglob("test_*.py")]
    assert set() == {path.parts[0] for path in tests} - looked_at


def test_a_fast_check_runs_every_unit_test_once_in_two_halves(bench: Bench, repository: Path) -> None:
    """Both halves are collected as the check calls pytest, and are together what a whole check collects."""
    (bench.root / "tests").symlink_to(repository / "tests")

    def called(*words: str, **extra: str) -> list[list[str]]:
        said = bench.check(*words, **extra).stdout
        return [line.split()[2:] for line in said.splitlines() if "pytest" in line and "not host" in line]

    first, second = called("--fast")
    (whole,) = called()
    (alone,) = called("--libraries")
    assert sorted(alone) == sorted(min(first, second, key=lambda words: "tests/meta" in words))
    begin = 1 + whole.index("office")
    files = {str(path.relative_to(repository)) for path in (repository / "tests").glob("*/**/test_*.py")}

    def selected(words: list[str]) -> set[str]:
        ignored = tuple(word.removeprefix("--ignore=") for word in words if word.startswith("--ignore="))
        places = tuple(word for word in words[begin:] if not word.startswith("--"))
        return {file for file in files if file.startswith(places) and not file.startswith(ignored or "/")}

    assert selected(first).isdisjoint(selected(second))
    assert selected(first) | selected(second) == selected(whole)


def test_the_tests_that_libraries_may_change_run_alone(bench: Bench) -> None:
    ended = bench.check("--libraries")
    assert _table(ended.stdout) == {
        "unit, golden and meta tests, first half": ("passed", ""),
        "all other steps": ("skipped", "--libraries"),
    }
    failed = bench.check("--libraries", FAILING="pytest")
    assert failed.returncode == 1


def test_what_the_caller_names_runs_once(bench: Bench) -> None:
    for flag in ("--fast", "--libraries"):
        said = bench.check(flag, "--", "tests/unit/plan").stdout
        assert said.count("tests/unit/plan") == 1
        assert "tests/unit/host" not in said


@pytest.mark.parametrize(
    ("failures", "passes_then", "outcome"),
    [(1, True, "passed"), (1, False, "failed"), (5, True, "passed"), (6, True, "failed")],
)
def test_with_a_second_try_a_few_failed_tests_run_once_more(
    bench: Bench, failures: int, passes_then: bool, outcome: str
) -> None:
    listed = ",\n".join(
        f'  "tests/browser/test_report.py::test_{number}": true' for number in range(failures)
    )
    (bench.root / "cache/environments/development-stand-in/bin/python").write_text(
        """#!/bin/sh
echo "called: $*"
case "$*" in *pytest*tests/browser*--last-failed) exit "$THEN" ;; *pytest*tests/browser*) ;; *) exit 0 ;; esac
for word; do case "$word" in cache_dir=*) cache=${word#cache_dir=}/v/cache ;; esac; done
mkdir -p "$cache" && echo "$LISTED" >"$cache/lastfailed"
exit 1
"""
    )
    surroundings = {"THEN": "0" if passes_then else "1", "LISTED": f"{{\n{listed}\n}}"}
    without = bench.check(**surroundings)
    assert ("failed", "exit 1") == _table(without.stdout)["browser tests"]
    assert "--last-failed" not in without.stdout
    ended = bench.check("--second-try", **surroundings)
    names = "".join(f" tests/browser/test_report.py::test_{number}" for number in range(failures))
    remark = f"at the second try:{names}" if outcome == "passed" else "exit 1"
    assert (outcome, remark) == _table(ended.stdout)["browser tests"]
    assert (0 if outcome == "passed" else 1) == ended.returncode
    assert (1 if failures <= 5 else 0) == ended.stdout.count("--last-failed")
