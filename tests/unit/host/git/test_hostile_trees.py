"""Nothing of a stranger's repository is obeyed, followed or waited for."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository, working_changes
from tests.support.sources.hostile_trees import THINGS, contents, places, plant_programs, planted

from bedplate.campaign.bisection import GOOD, BisectHistory, ends_of
from bedplate.errors import BedplateError, PlanError
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.git import GitRevisions, apply_patch, export, refresh, resolve, write_tree
from bedplate.host.requirement import find_tool
from bedplate.model.cell import SourceTree

pytestmark = pytest.mark.skipif(not all(map(find_tool, ("git",))), reason="histories are git's")

_OWNERS = (0, 12345) if os.geteuid() == 0 else (os.geteuid(),)


@pytest.fixture
def place() -> Iterator[Path]:
    """Not in tmp_path: its parents are closed to every account but root."""
    with tempfile.TemporaryDirectory(prefix="bedplate-test-git-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture
def tree(place: Path) -> Path:
    found = repository(place / "src")
    for number in range(4):
        commit(found, f"Commit {number}", {"a.txt": f"{number}\n", "sub/b.txt": "bee\n"})
    git(found, "tag", "-a", "-m", "v1", "v1.0", "HEAD~2")
    git(found, "pack-refs", "--all")
    git(found, "branch", "loose")
    (found / "a.txt").write_text("changed\n")
    return found


def _own(top: Path, owner: int) -> None:
    for path in (top, *top.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def _read_all(tree: Path, out: Path) -> None:
    """All that bedplate does with a tree: what plans, builds of engines and of kernels, and bisections ask of it."""
    revisions = GitRevisions()
    commits = [
        revisions.find(tree, name, lambda read: {"a": read("a.txt") or ""}) for name in ("master~1", "v1.0")
    ]
    assert all(found[1]["a"] for found in commits)
    head, _, changes = revisions.find(tree, "working tree", lambda _: {})
    assert changes is not None
    out.mkdir()
    account = server_account() if os.geteuid() == 0 else None
    out.chmod(0o755)
    source = SourceTree("src", str(tree), "working tree", head, {}, changes)
    write_tree(out / "source", source, account=account, commands=Commands())
    assert (tree / "a.txt").read_bytes() == (out / "source/a.txt").read_bytes()
    refresh(tree, head.hash, out / "kernel", out / "manifest")
    apply_patch(changes, out / "kernel", commands=Commands())
    ends = ends_of(tree, "v1.0", "master")
    step = BisectHistory(ends).next([])
    assert step.first_bad or BisectHistory(ends).next([(step.commit or "", GOOD)])
    shutil.rmtree(out)


@pytest.mark.parametrize("every_key", [False, True])
@pytest.mark.parametrize("owner", _OWNERS)
def test_no_program_runs_that_a_tree_names_under_any_key_that_git_documents(
    tree: Path, place: Path, owner: int, every_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = place / "sprung"
    environment = plant_programs(tree, marker, every_key=every_key)
    if not every_key:
        # It would run: a command of git's own in the tree obeys.
        subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(tree), "diff"], capture_output=True, check=False
        )
        assert marker.exists()
        marker.unlink()
    if owner:
        _own(tree, owner)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    before = contents(tree)
    _read_all(tree, place / "out")
    assert not marker.exists(), marker.read_text()
    assert before == contents(tree)


def test_what_is_no_file_at_any_place_of_a_tree_is_named_or_passed_over_at_once(tree: Path) -> None:
    wrong: dict[tuple[str, str], object] = {}
    others = [name for name in THINGS if name != "named pipe"]
    # `./torture` has all of them at each place.
    for number, where in enumerate(places(tree)):
        for thing in ("named pipe", others[number % len(others)]):
            with planted(tree, where, THINGS[thing]):
                started = time.monotonic()
                try:
                    GitRevisions().find(tree, "working tree", lambda read: {"a": read("a.txt") or ""})
                except BedplateError:
                    pass
                except BaseException as error:  # noqa: BLE001 -- it is what is looked for
                    wrong[str(where), thing] = error
                # Far below the limit that ends a git which waits.
                if time.monotonic() - started > 60:
                    wrong[str(where), thing] = "it took long"
    assert not wrong


@pytest.mark.parametrize(
    ("where", "make", "said"),
    [
        (".git/HEAD", os.mkfifo, "HEAD is a named pipe, where a repository has a file"),
        (".git/HEAD", THINGS["link to a file of root's"], "HEAD is a symbolic link"),
        (".git/packed-refs", THINGS["huge file"], "packed-refs is larger than"),
        (".git/refs/heads/loose", THINGS["huge file"], "loose is larger than"),
        (".git/objects", THINGS["link to a folder"], "objects is a symbolic link"),
        (".git/objects/info/alternates", lambda path: path.write_text("/dev/zero\n"), "no folder of objects"),
        (
            ".git/objects/info/alternates",
            lambda path: path.write_text("../../a.txt\n"),
            "no folder of objects",
        ),
        (".git/commondir", lambda path: path.write_text("/\n"), "commondir leads to another repository"),
        (".gitignore", os.mkfifo, ".gitignore is a named pipe"),
    ],
)
def test_what_a_tree_has_in_place_of_a_file_is_named(
    tree: Path, where: str, make: Callable[[Path], None], said: str
) -> None:
    with planted(tree, Path(where), make), pytest.raises(PlanError, match=said):
        GitRevisions().find(tree, "working tree", lambda _: {})


def test_a_tree_does_not_lead_to_the_repository_of_somebody_else(tree: Path, place: Path) -> None:
    outer = place / "outer"
    outer.mkdir()
    (outer / ".git").write_text(f"gitdir: {tree}/.git\n")
    with pytest.raises(PlanError, match=r"does not have .* as its work tree"):
        resolve(outer, "master")
    shutil.rmtree(outer)
    fake = repository(outer)
    (fake / ".git/commondir").write_text(f"{tree}/.git\n")
    with pytest.raises(PlanError, match="leads to another repository"):
        resolve(outer, "master")


def test_submodules_linked_work_trees_and_borrowed_objects_are_read(tree: Path, place: Path) -> None:
    git(place, "clone", "--quiet", "--shared", str(tree), "shared")
    assert resolve(tree, "v1.0") == resolve(place / "shared", "v1.0")
    git(tree, "worktree", "add", "--quiet", str(place / "linked"), "v1.0")
    (place / "linked/a.txt").write_text("elsewhere\n")
    assert "+elsewhere" in working_changes(place / "linked").patch
    outer = repository(place / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tree), "module")
    assert resolve(tree, "master") == resolve(outer / "module", "master")
    (outer / "module/a.txt").write_text("inside\n")
    assert "+inside" in working_changes(outer / "module").patch
    assert resolve(outer / "module", "origin/HEAD") == resolve(tree, "master")


def test_a_repository_of_the_longer_hashes_is_read(place: Path) -> None:
    tree = place / "long"
    tree.mkdir()
    git(tree, "init", "--quiet", "--initial-branch=master", "--object-format=sha256")
    commit(tree, "First", {"a.txt": "one\n"})
    assert 64 == len(resolve(tree, "master").hash)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("[extensions]\nrefStorage = reftable\n", "extensions.refstorage = 'reftable', which is not read"),
        ("[extensions]\nfuture = 1\n", "extensions.future, which bedplate does not know"),
        ("[core\n", "bad config line"),
    ],
)
def test_a_repository_of_another_form_is_refused(tree: Path, key: str, said: str) -> None:
    with (tree / ".git/config").open("a") as config:
        config.write(key)
    with pytest.raises(PlanError, match=said):
        resolve(tree, "master")


def test_changes_are_the_bytes_of_the_work_tree_whatever_attributes_say(tree: Path, place: Path) -> None:
    commit(
        tree,
        "Attributes",
        {".gitattributes": "*.txt text eol=crlf ident\n*.u working-tree-encoding=UTF-16\n"},
    )
    for name in ("a.txt", "d.txt", "e.u"):
        (tree / name).write_bytes("$Id: x $\r\nmixed\nü\r\n".encode())
    git(tree, "-c", "core.attributesFile=/dev/null", "add", "--intent-to-add", "d.txt")
    (place / "work").mkdir()
    export(tree, resolve(tree, "HEAD").hash, place / "work/source")
    apply_patch(working_changes(tree).patch, place / "work/source", commands=Commands())
    assert (tree / "a.txt").read_bytes() == (place / "work/source/a.txt").read_bytes()
    assert (tree / "d.txt").read_bytes() == (place / "work/source/d.txt").read_bytes()


def test_modes_links_and_deletions_of_a_work_tree_are_changes(tree: Path, place: Path) -> None:
    (tree / "sub/b.txt").unlink()
    (tree / "a.txt").chmod(0o755)
    (tree / "link").symlink_to("a.txt")
    git(tree, "add", "link")
    patch = working_changes(tree).patch
    assert "deleted file mode 100644" in patch
    assert "new mode 100755" in patch
    assert "new file mode 120000" in patch


def test_a_patch_may_not_make_a_link_that_leads_out(place: Path) -> None:
    folder = place / "work/source"
    folder.mkdir(parents=True)
    for target in ("/etc/shadow", "../../etc"):
        text = f"diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        with pytest.raises(PlanError, match="'x' a symbolic link that leads out of the tree"):
            apply_patch(text, folder, commands=Commands())
        (folder / "x").unlink()


def _loose(tree: Path, content: bytes) -> str:
    """An object that no git would write."""
    name = "ab" + "0" * 38
    path = tree / ".git/objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return name


@pytest.mark.parametrize("head", [b"commit 30000000000\0", b"blob 30000000000\0", b"commit 10\0"])
def test_an_object_that_unpacks_without_end_is_refused(tree: Path, head: bytes) -> None:
    packer = zlib.compressobj(9)
    zeros = b"\0" * (1 << 20)
    content = packer.compress(head) + b"".join(packer.compress(zeros) for _ in range(600)) + packer.flush()
    name = _loose(tree, content)
    started = time.monotonic()
    with pytest.raises(BedplateError):
        resolve(tree, name)
    assert time.monotonic() - started < 60


def test_a_commit_with_more_files_than_a_disk_can_hold_is_refused(tree: Path, place: Path) -> None:
    blob = git(tree, "hash-object", "-w", "--stdin", stdin="x").strip()
    inner = f"100644 blob {blob}"
    entries = "".join(f"{inner}\t{'f' * 200}{number}\n" for number in range(40))
    name = git(tree, "mktree", stdin=entries).strip()
    for _ in range(5):
        name = git(
            tree, "mktree", stdin="".join(f"040000 tree {name}\td{number}\n" for number in range(40))
        ).strip()
    planted_commit = git(tree, "commit-tree", name, "-m", "bomb").strip()
    with pytest.raises(PlanError, match="has more files than"):
        refresh(tree, planted_commit, place / "out", place / "manifest")


def test_a_tree_that_root_alone_can_read_is_read_without_its_rights_to_write(place: Path, tree: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("such a tree is root's")
    for path in (tree, *tree.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = contents(tree)
    _read_all(tree, place / "out")
    assert before == contents(tree)
