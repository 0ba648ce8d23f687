"""Whatever is started is shut in, or stands in the list below with the reason why it is not."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Protocol

from tests.support.tools.syntax import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TOP = "src/bedplate/"
_STARTS = frozenset({"subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_output"})
_COMMANDS = re.compile(r"(^|\.|_)(commands|runner)$|(?<!\w)Commands\(\)\)?$")
# What a call is handed that takes rights and places from its program.
_RESTRICTING = frozenset({"confinement", "preexec_fn"})

_DEVICES = "the distribution's program, with bedplate's words: it works on devices, mounts and file systems, which only root may"
_MACHINE = (
    "the distribution's program, with bedplate's words: it asks the machine or changes it for the caller"
)
_OUR_OWN = "bedplate's own program, which nobody else's code is part of"
_COMPILER = "the machine's compiler or pkg-config says what it is, or what the machine's own headers say"
_SYNC = "sync(1) of one file system"
_CLUSTER = "a client of Slurm, with the caller's rights there"
# A folder, a module, or a function of one, below src/bedplate.
NOT_SHUT_IN = {
    "filesystem/": _DEVICES,
    "host/block_tree.py": _DEVICES,
    "host/scratch_device.py": _DEVICES,
    "host/zpool.py": _DEVICES,
    "host/block_requests.py": _DEVICES,
    "host/mount.py": _DEVICES,
    "host/ledger.py": _DEVICES,
    "workloads/fio/prepare.py:FioMeter.measure": _DEVICES,
    "visit/recording.py:RawRecording.place": _DEVICES,
    "campaign/preparation.py:install": _MACHINE,
    "executors/qemu/guest.py:qemu_version": _MACHINE,
    "host/apt.py": _MACHINE,
    "host/facts.py:_version_line": _MACHINE,
    "executors/slurm/controller.py": _CLUSTER,
    "engines/postgresql/builds.py:_identity_of": _COMPILER,
    "engines/postgresql/builds.py:_succeeds": _COMPILER,
    "engines/external/build.py:_toolchain": _COMPILER,
    "executors/qemu/kernels.py:_compiler": _COMPILER,
    "host/native_driver.py": _COMPILER,
    "engines/postgresql/visit.py:Cluster.take_over": _SYNC,
    "visit/server.py:start_server": _SYNC,
    "visit/recording.py:RawRecording.sync": _SYNC,
    "workloads/acks/visit.py:_Run.measure": _SYNC,
    "workloads/microbenchmark/visit.py:_Tests._prepare": _SYNC,
    "workloads/power_cut/bench.py:RecordedSetup.settle": _SYNC,
    "workloads/power_cut/worker.py:CutSite.recover": _SYNC,
    "executors/slurm/payload.py:Payload._live": _OUR_OWN,
    "host/command.py:started_apart": _OUR_OWN,
    "host/recorder.py:_popen": _OUR_OWN,
    "host/recorder.py:probe_device": _DEVICES,
    "visit/recording.py:LoggedClient._start": _OUR_OWN,
    "workloads/acks/visit.py:PipeReader._started": _OUR_OWN,
    "workloads/power_cut/bundle.py:_images": "zstd or tar packs what bedplate has made",
    "workloads/power_cut/bundle.py:tried": "bedplate's own script, which mounts; it shuts the servers in that it starts",
    "engines/postgresql/builds.py:write_source": "cp(1) of a release's sources",
    "executors/qemu/kernels.py:arrange": "depmod of signed packages, with their modules",
    "executors/qemu/guest.py:QemuProcess.__init__": "QEMU, which the guest is shut in by",
    "host/git.py": "git with a configuration of bedplate's own, which names no program",
    "host/shut_in.py:build_command": "a caller without root has its own rights alone, and so has a build",
    "workloads/tpch/prepare.py:_generate": "a wheel whose digest is in bedplate's own requirements, with bedplate's words",
}


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def unrestricted(path: str, text: str) -> Iterator[tuple[str, int]]:
    """Each function that starts a program from which nothing is taken, `module:Class.function`, with the line."""
    if path.startswith(_TOP) and path.endswith(".py"):
        yield from _unrestricted_in(tree(text), path.removeprefix(_TOP))


def _unrestricted_in(node: ast.AST, name: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}{'.' if ':' in name else ':'}{child.name}"
        if (
            isinstance(child, ast.Call)
            and _starts(child.func)
            and not any(keyword.arg in _RESTRICTING for keyword in child.keywords)
        ):
            yield inner, child.lineno
        yield from _unrestricted_in(child, inner)


def _starts(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and (
        ast.unparse(function) in _STARTS
        or (function.attr in {"run", "stream"} and bool(_COMMANDS.search(ast.unparse(function.value))))
    )


def not_chosen(path: str, text: str, listed: Mapping[str, str]) -> list[str]:
    """Those that are in no list."""
    return [
        f"{path}:{line}: {name.partition(':')[2]} starts a program that nothing is taken from; hand it a `confinement` "
        "(Restriction, or `to_read_alone` for one that answers a question), or say in NOT_SHUT_IN why it needs none"
        for name, line in unrestricted(path, text)
        if not any(name.startswith(place) for place in listed)
    ]


def test_whatever_is_started_is_shut_in_or_has_a_reason(
    python_sources: Sequence[_Source], judge: _Judge
) -> None:
    judge(
        [
            finding
            for source in python_sources
            for finding in not_chosen(source.path, source.text, NOT_SHUT_IN)
        ]
    )


def test_the_list_has_nothing_that_is_gone(python_sources: Sequence[_Source], judge: _Judge) -> None:
    names = [name for source in python_sources for name, _ in unrestricted(source.path, source.text)]
    judge(
        [
            f"{place} starts nothing without a restriction; take it out of NOT_SHUT_IN"
            for place in NOT_SHUT_IN
            if not any(name.startswith(place) for name in names)
        ]
    )


def test_every_way_of_starting_a_program_is_seen() -> None:
    text = """
class Here:
    def one(self):
        return self._commands.run(["a"], check=False)
    def two(self):
        return subprocess.Popen(["a"])
    def three(self):
        return (commands or Commands()).run(["a"])
    def four(self, site):
        return site.commands.stream(["a"], source, timeout_s=1)
    def shut_in(self):
        Commands().run(["a"], confinement=restriction)
        subprocess.Popen(["a"], preexec_fn=become)
        self.run("a")
"""
    path = f"{_TOP}here.py"
    assert ["here.py:Here.one", "here.py:Here.two", "here.py:Here.three", "here.py:Here.four"] == [
        name for name, _ in unrestricted(path, text)
    ]
    assert 3 == len(not_chosen(path, text, {"here.py:Here.two": "a reason"}))
    assert [] == not_chosen(path, text, {"here.py": "a reason"})
