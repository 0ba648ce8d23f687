"""How a kernel is configured and compiled, out of its tree. A change here raises `RECIPE_VERSION`.

Where bedplate is root, all that runs of the tree (its makefiles, its scripts) runs shut in: as an account without rights, without network, with
the source read-only, and able to write to the build folder alone. As a user without root it runs with that user's rights.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, VerifyFailed
from bedplate.executors.qemu.own_kernel.configuration import Configuration, read_configuration
from bedplate.executors.qemu.own_kernel.image import embedded_configuration, release_in_image
from bedplate.host.account import server_account
from bedplate.host.build_progress import BuildProgress, count_objects, watched
from bedplate.host.git.checkout import give
from bedplate.host.requirement import find_tool
from bedplate.host.shut_in.building import SAID_BYTES_MOST
from bedplate.host.shut_in.confinement import DATA, PROGRAMS, Confinement

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.executors.qemu.own_kernel.fragment import WantedConfiguration
    from bedplate.host.command import Commands

RECIPE_VERSION = 1
COMPILER = "gcc"
_CACHING_COMPILER = "ccache"
_OBJECTS, _FRAGMENT, _COMPILER_CACHE = "objects", "fragment", "ccache"
_IMAGE = "arch/x86/boot/bzImage"
_CONFIGURE_TIMEOUT_S = 1800.0
# On two busy cores the first build takes an hour.
_COMPILE_TIMEOUT_S = 6 * 3600.0
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True)
class KernelWork:
    """One build to be made: of `source`, in the folder `work`, which former builds of the same tree and configuration were made in too.

    `label` stands behind the version in the kernel's release, `built_at` is the time that the kernel says it was built at. What is `confined` is
    shut in, which needs root.
    """

    source: Path
    work: Path
    wanted: WantedConfiguration
    label: str
    built_at: str
    confined: bool
    commands: Commands
    progress: Callable[[BuildProgress], None]

    @property
    def objects(self) -> Path:
        """Where the objects, the configuration and the image are."""
        return self.work / _OBJECTS

    @property
    def image(self) -> Path:
        """The finished image; VerifyFailed where it is none of the build's own."""
        return self.made(_IMAGE)

    def made(self, name: str) -> Path:
        """A file that the build is to have written. VerifyFailed where there is another: root reads it, and makefiles are anybody's."""
        path = self.objects / name
        if not path.resolve().is_relative_to(self.objects.resolve()) or path.is_symlink():
            raise VerifyFailed(f"{path} leads out of the folder that the build may write to")
        if path.exists() and not path.is_file():
            raise VerifyFailed(f"{path} is no file, and the build was to write one")
        return path

    @property
    def configuration(self) -> Configuration:
        """As the kernel's own tools wrote it; VerifyFailed if they did not."""
        found = read_configuration(self.made(".config"))
        if found is None:
            raise VerifyFailed(f"{self.objects / '.config'} was not written")
        return found


def build_kernel(work: KernelWork) -> None:
    """Configure and compile into `work.objects`; CommandFailed with a tool's whole output, VerifyFailed with every option that was lost."""
    work.objects.mkdir(parents=True, exist_ok=True)
    _take_away_unfinished(work)
    _hand_over(work)
    try:
        _configure(work)
        _compile(work)
    except CommandFailed as error:
        if error.status is not None:
            # By itself: make(1) took away what it had half made.
            _marker(work).unlink()
        raise
    _verify(work)
    _marker(work).unlink()


def _marker(work: KernelWork) -> Path:
    return work.work / "under-way"


def _take_away_unfinished(work: KernelWork) -> None:
    """What a build wrote that was killed: a compiler may have stopped in the midst of an object, and make(1) goes by its time."""
    marker = _marker(work)
    if marker.exists():
        began_ns = marker.stat().st_mtime_ns
        for folder, _, names in os.walk(work.objects):
            for name in names:
                path = Path(folder, name)
                if path.lstat().st_mtime_ns >= began_ns:
                    path.unlink()
    marker.unlink(missing_ok=True)
    marker.touch()


def _hand_over(work: KernelWork) -> None:
    """Give the build folder to the account that builds; the source stays ours."""
    (work.work / _FRAGMENT).write_text(work.wanted.text, encoding="utf-8")
    if not work.confined:
        return
    account = server_account()
    if work.objects.stat().st_uid != account.uid:
        give(work.objects, account)


def _configure(work: KernelWork) -> None:
    work.progress(BuildProgress("configure"))
    _make(
        work, f"KCONFIG_ALLCONFIG={_inside(work, _FRAGMENT)}", "allnoconfig", timeout_s=_CONFIGURE_TIMEOUT_S
    )
    lost = tuple(work.wanted.lost(work.configuration))
    if lost:
        raise VerifyFailed(*lost)


def _compile(work: KernelWork) -> None:
    # Of a former commit: make(1) knows which of them still stand, and those that it writes anew count.
    again = work.image.exists()
    word = "compile what changed" if again else "compile"
    since_ns = _marker(work).stat().st_mtime_ns if again else None

    def done() -> int:
        return count_objects(work.objects, since_ns=since_ns)

    def report(number: int) -> None:
        work.progress(BuildProgress(word, number, None))

    report(done())
    with watched(done, report):
        _make(work, "bzImage", timeout_s=_COMPILE_TIMEOUT_S)


def _verify(work: KernelWork) -> None:
    """The image is of this build: it holds this configuration, and is of the release that the makefiles say."""
    said = work.made("include/config/kernel.release").read_text(encoding="utf-8").strip()
    found = release_in_image(work.image)
    reasons = [] if found == said else [f"the image says that it is {found}, the build that it is {said}"]
    embedded = embedded_configuration(work.image, commands=work.commands)
    if embedded is not None and embedded.strip() != work.configuration.text.strip():
        reasons.append("the image holds another configuration than the one that was asked for")
    if reasons:
        raise VerifyFailed(*reasons)


def _inside(work: KernelWork, name: str) -> str:
    """A path below the build folder as the build sees it."""
    return f"{DATA}/{name}" if work.confined else str(work.work / name)


def _make(work: KernelWork, *words: str, timeout_s: float) -> None:
    """make(1) with nothing of the user's environment: CFLAGS, ARCH or MAKEFLAGS would become part of the kernel."""
    source = PROGRAMS if work.confined else str(work.source)
    make, env = find_tool("make"), find_tool("env")
    compiler = COMPILER
    variables: tuple[str, ...] = ("LC_ALL=C", "HOME=/nonexistent")
    if find_tool(_CACHING_COMPILER) is not None:
        compiler = f"{_CACHING_COMPILER} {COMPILER}"
        variables += (f"CCACHE_DIR={_inside(work, f'{_OBJECTS}/.{_COMPILER_CACHE}')}",)
    argv = (
        *(str(env), "--ignore-environment", *variables, f"PATH={_path()}"),
        *(str(make), "--no-print-directory", "-s", "-C", source, f"O={_inside(work, _OBJECTS)}"),
        *("-j", str(len(os.sched_getaffinity(0))), f"CC={compiler}", f"LOCALVERSION={work.label}"),
        *(
            f"KBUILD_BUILD_TIMESTAMP={work.built_at}",
            "KBUILD_BUILD_USER=bedplate",
            "KBUILD_BUILD_HOST=bedplate",
        ),
        *words,
    )
    confined = None
    if work.confined:
        confined = Confinement(argv, work.work, work.source, server_account(), sees_system_alone=True)
    work.commands.run(argv, timeout_s=timeout_s, confinement=confined, most_bytes=SAID_BYTES_MOST)


def _path() -> str:
    """The folders of the programs that a build uses, and the system's own."""
    own = [str(found.parent) for name in (COMPILER, _CACHING_COMPILER) if (found := find_tool(name))]
    return os.pathsep.join(dict.fromkeys((*own, *_SYSTEM_FOLDERS)))


def copy_result(work: KernelWork, folder: Path) -> None:
    """The image and its configuration, for whoever keeps them."""
    shutil.copyfile(work.image, folder / "bzImage")
    shutil.copyfile(work.made(".config"), folder / "config")
