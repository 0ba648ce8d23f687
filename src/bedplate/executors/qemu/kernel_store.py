"""The form of a kernel in the cache: one layout, whatever the packages' was, and a record of them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, VerifyFailed
from bedplate.executors.qemu.guest_kernel import GuestKernel
from bedplate.executors.qemu.own_kernel.configuration import read_configuration
from bedplate.executors.qemu.own_kernel.image import release_in_image

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.executors.qemu.guest_tools import Tool
    from bedplate.executors.qemu.kernel_packages import UnpackedKernel
    from bedplate.host.command import Commands

RECORD = "kernel.json"
# Part of the digest: what `arrange` makes of the same packages.
_LAYOUT_VERSION = 1
_DEPMOD_LIMIT_S = 300.0


def kernels_directory(cache_directory: Path) -> Path:
    """Where the kernels lie in a cache."""
    return cache_directory / "kernels"


def arrange(unpacked: UnpackedKernel, fresh: Path, *, depmod: Tool, commands: Commands) -> None:
    """Make `fresh/root` with `boot` and `lib/modules` out of unpacked packages, and run depmod on it.

    All else of the packages is left behind. VerifyFailed where image and modules are not both there,
    or are not of this release.
    """
    root = fresh / "root"
    fresh.mkdir(mode=0o755)
    (root / "lib").mkdir(parents=True)
    (root / "usr").mkdir()
    # The newer depmod(8) looks below usr/lib alone.
    (root / "usr/lib").symlink_to("../lib")
    for folder in ("boot", "lib/modules", "usr/lib/modules"):
        if (unpacked.root / folder).is_dir():
            _merge(unpacked.root / folder, root / folder)
    modules = root / "lib/modules" / unpacked.release
    image = _first(root / f"boot/vmlinuz-{unpacked.release}", modules / "vmlinuz")
    lacking = [name for name in ("modules.builtin", "modules.order") if not (modules / name).is_file()]
    if image is None or lacking:
        parts = [*(["an image"] if image is None else []), *lacking]
        names = ", ".join(item.name for item in unpacked.packages)
        raise VerifyFailed(f"the packages of kernel {unpacked.release} have no {', '.join(parts)}: {names}")
    # Ubuntu's is for root alone, as it tells where the kernel's code lies; a guest's is no secret.
    image.chmod(0o644)
    found = release_in_image(image)
    if found not in (None, unpacked.release):
        raise VerifyFailed(f"the image of kernel {unpacked.release} says that it is {found}")
    commands.run(
        [str(depmod.program), "--basedir", str(root), unpacked.release],
        timeout_s=_DEPMOD_LIMIT_S,
        extra_environment=depmod.environment,
    )
    dependencies = modules / "modules.dep"
    if not dependencies.is_file() or dependencies.stat().st_size == 0:
        raise VerifyFailed(f"depmod found no module of kernel {unpacked.release}")


def write_record(unpacked: UnpackedKernel, fresh: Path) -> None:
    """Write what the kernel is made of, the last file of its folder."""
    root, release = fresh / "root", unpacked.release
    modules = root / "lib/modules" / release
    image = _first(root / f"boot/vmlinuz-{release}", modules / "vmlinuz")
    config = _first(root / f"boot/config-{release}", modules / "config")
    assert image is not None  # noqa: S101 -- `arrange` saw it
    first = unpacked.packages[0]
    parts = [f"{item.name} {item.version} {item.sha256}" for item in unpacked.packages]
    record = {
        "release": release,
        "image": str(image.relative_to(fresh)),
        "config": None if config is None else str(config.relative_to(fresh)),
        "origin": f"{first.name} {first.version} ({unpacked.suite})",
        "packages": [
            {"name": item.name, "version": item.version, "sha256": item.sha256} for item in unpacked.packages
        ],
        "digest": hashlib.sha256("\n".join([str(_LAYOUT_VERSION), *sorted(parts)]).encode()).hexdigest(),
    }
    (fresh / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_kernel(folder: Path) -> GuestKernel:
    """The kernel of a folder in the cache; OutputNotUnderstood for a damaged record."""
    text = (folder / RECORD).read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
        return GuestKernel(
            asked=fields["release"],
            release=fields["release"],
            image=folder / fields["image"],
            modules=folder / "root",
            origin=fields["origin"],
            digest=fields["digest"],
            configuration=None if fields["config"] is None else read_configuration(folder / fields["config"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise OutputNotUnderstood(
            str(folder / RECORD),
            expected="the record of a kernel (remove its folder to fetch it again)",
            found=text,
        ) from error


def _merge(source: Path, target: Path) -> None:
    """Move a tree into another: packages of one release share folders, under either name."""
    if not target.exists() and not target.is_symlink():
        source.rename(target)
        return
    if not source.is_dir() or source.is_symlink():
        raise VerifyFailed(f"two packages hold {target.name}")
    for item in sorted(source.iterdir()):
        _merge(item, target / item.name)


def _first(*candidates: Path) -> Path | None:
    return next((path for path in candidates if path.is_file()), None)
