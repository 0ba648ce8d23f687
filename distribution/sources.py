"""The files that packages are made of, and the one time that everything in them has."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHECKOUT = Path(__file__).resolve().parents[1]
DESCRIPTION = "measures databases across Linux file systems"
# Beside the package `bedplate` in a checkout, in its folder `shipped` once installed: bedplate.installation finds them.
_SHIPPED = ("plans", "claims", "drivers", "examples")
# Shells, and where each looks for what completes a program.
_COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/bedplate",
    "zsh": "usr/share/zsh/{zsh}/_bedplate",
    "fish": "usr/share/fish/vendor_completions.d/bedplate.fish",
}
HOME = "usr/share/bedplate"


@dataclass(frozen=True)
class Sources:
    """A checkout's tracked files by their paths, and the time of its last commit in seconds since 1970."""

    files: tuple[Path, ...]
    epoch: int
    version: str = __version__

    @property
    def environment(self) -> Mapping[str, str]:
        """That of build tools: what they make has the commit's time, whatever the clock says."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def of_checkout() -> Sources:
    """Those of this checkout. CalledProcessError outside of git: nobody could say what belongs to a package."""
    listed = _git("ls-files", "-z").split("\0")
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct").strip()
    files = tuple(Path(name) for name in sorted(listed) if name and (CHECKOUT / name).is_file())
    return Sources(files, int(epoch))


def changed_files() -> list[str]:
    """Tracked files whose changes no commit has."""
    listed = _git("status", "--porcelain", "--untracked-files=no", "--no-renames", "-z").split("\0")
    return [line[3:] for line in listed if line]


def lay_out(sources: Sources, root: Path, *, zsh: str) -> None:
    """Put a distribution's tree below `root`: launcher, package, documents, manual page, completions.

    `zsh` is the folder where the distribution's zsh looks for what completes programs.
    """
    for path in sources.files:
        for place in _places(path):
            _copy(CHECKOUT / path, root / place)
    link = root / "usr/bin/bedplate"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../share/{link.name}/{link.name}")
    manual = root / "usr/share/man/man1/bedplate.1.gz"
    manual.parent.mkdir(parents=True)
    packed = gzip.compress((CHECKOUT / "docs/bedplate.1").read_bytes(), mtime=0)
    # The tenth byte says the system, which every Python knows another way: unknown.
    manual.write_bytes(packed[:9] + b"\xff" + packed[10:])
    for shell, place in _COMPLETIONS.items():
        script = root / place.format(zsh=zsh)
        script.parent.mkdir(parents=True)
        script.write_text(completion(shell), encoding="utf-8")


def completion(shell: str) -> str:
    """What completes bedplate's commands in a shell, as `bedplate completion` prints it."""
    command = [sys.executable, "-P", "-s", "-m", "bedplate", "completion", shell]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def settle(root: Path, epoch: int) -> None:
    """Give everything below `root` one time and the rights of a file that all may read."""
    for path in sorted(root.rglob("*"), reverse=True):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    root.chmod(0o755)
    os.utime(root, (epoch, epoch))


def _places(path: Path) -> Iterator[str]:
    """Where a tracked file goes in a distribution's tree; nowhere, if only contributors need it."""
    top = path.parts[0]
    if top == "src" or str(path) in ("bedplate", "requirements/environment.sh", "requirements/runtime.txt"):
        yield f"{HOME}/{path}"
    if top in _SHIPPED:
        yield f"{HOME}/src/bedplate/shipped/{path}"
    # Examples a second time: a machine may leave out what lies below usr/share/doc, and a ready plan needs them.
    if top in ("docs", "examples") or str(path) in ("README.md", "CHANGELOG.md"):
        yield f"usr/share/doc/bedplate/{path}"
    if str(path) == "LICENSE":
        yield "usr/share/doc/bedplate/copyright"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def _git(*words: str) -> str:
    found = subprocess.run(
        ["git", "-c", f"safe.directory={CHECKOUT}", "-C", str(CHECKOUT), *words],
        capture_output=True,
        check=True,
        text=True,
    )
    return found.stdout
