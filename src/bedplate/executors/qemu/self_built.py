"""A kernel of the user's own: an image with its modules, in the layouts that builds leave behind, or an image that has all built in.

    SOURCE/arch/x86/boot/bzImage, SOURCE/lib/modules/R    a build folder after
                                                          `make modules_install INSTALL_MOD_PATH=.`
    TREE/boot/vmlinuz-R, TREE/lib/modules/R               `make install modules_install` into a folder,
                                                          or an unpacked package; also the machine itself
    lib/modules/R/vmlinuz                                 the image beside its modules, as Fedora has it
    SOURCE/arch/x86/boot/bzImage, SOURCE/vmlinux          an image alone, without any modules

The path names the folder, the folder of the modules, or the image itself. Nothing is written there. What a guest needs and the kernel's
configuration lacks is named before anything boots.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError, RequirementMissing
from bedplate.executors.qemu.guest_kernel import GuestKernel
from bedplate.executors.qemu.own_kernel.configuration import Configuration, read_configuration
from bedplate.executors.qemu.own_kernel.image import (
    ImageUnread,
    embedded_configuration,
    has_pvh_entry,
    is_vmlinux,
    release_in_image,
)
from bedplate.executors.qemu.own_kernel.options import EVERY_GUEST, lacking
from bedplate.host.command import Commands
from bedplate.host.files import sha256_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.executors.qemu.guest_tools import Tool

_IMAGES = (
    *("arch/x86/boot/bzImage", "arch/arm64/boot/Image"),
    *("boot/vmlinuz-*", "vmlinuz-*", "vmlinuz", "bzImage", "lib/modules/*/vmlinuz"),
)
# What the build writes down as its own release.
_RELEASE_FILE = "include/config/kernel.release"


def read_self_built(asked: str, *, zstd: Tool | None = None) -> GuestKernel:
    """The kernel at this path.

    PlanError says what is not there, or between which ones to choose; RequirementMissing which options its configuration lacks.
    `zstd` unpacks an image that is packed with it, by default the one in the search path.
    """
    path = Path(asked)
    if not path.is_absolute():
        raise PlanError(
            f"kernel {asked}: not a path from the root; name the whole path of an image or a build's folder"
        )
    if not path.exists():
        raise PlanError(f"kernel {asked}: there is no such path; name an image, or the folder of a build")
    try:
        pairs = dict(_pairs(path))
        if not pairs:
            return _alone(asked, path, zstd)
    except OSError as error:
        raise PlanError(f"kernel {asked} cannot be read: {error.filename}: {error.strerror}") from error
    built = text_of(path / _RELEASE_FILE)
    if len(pairs) > 1 and built in {folder.name for folder in pairs}:
        pairs = {folder: image for folder, image in pairs.items() if folder.name == built}
    if len(pairs) > 1:
        images = ", ".join(sorted(str(image) for image in pairs.values()))
        raise PlanError(f"kernel {asked} has several kernels; name the image of one: {images}")
    ((modules, image),) = pairs.items()
    return _with_modules(asked, path, modules, image, zstd)


def _with_modules(asked: str, path: Path, modules: Path, image: Path, zstd: Tool | None) -> GuestKernel:
    top = modules.parents[2]
    if not (modules / "modules.dep").is_file():
        raise RequirementMissing(
            f"kernel {asked}: {modules} has no modules.dep; `depmod --basedir {top} {modules.name}` makes it"
        )
    configs = (
        *(modules / "config", modules / "build/.config"),
        *(folder / f"boot/config-{modules.name}" for folder in dict.fromkeys((path, top))),
        *(folder / ".config" for folder in dict.fromkeys((path, top))),
    )
    configuration = _configuration(image, configs, zstd)
    _require(asked, image, configuration, with_modules=True)
    return GuestKernel(
        asked=asked,
        release=modules.name,
        image=image,
        modules=top,
        origin=str(path),
        digest=_digest(modules, image),
        configuration=configuration,
    )


def _alone(asked: str, path: Path, zstd: Tool | None) -> GuestKernel:
    """A kernel without modules: all that a guest needs must be built in."""
    if path.is_file():
        images = [path]
    else:
        found = [image for pattern in (*_IMAGES, "vmlinux") for image in sorted(path.glob(pattern))]
        images = [image for image in found if image.is_file()]
        built = path / "arch/x86/boot/bzImage"
        images = [built] if built in images else images
    releases = {image: release for image in images if (release := release_in_image(image)) is not None}
    if not releases:
        raise PlanError(
            f"kernel {asked}: no image (arch/x86/boot/bzImage, boot/vmlinuz-R, vmlinux, lib/modules/R/vmlinuz) with "
            f"its modules (lib/modules/R), and none that says its release; name the image, or the folder of a build "
            f"after `make modules_install INSTALL_MOD_PATH=.`"
        )
    if len(set(releases.values())) > 1:
        raise PlanError(
            f"kernel {asked} has several kernels; name the image of one: {', '.join(map(str, sorted(releases)))}"
        )
    image, release = next(iter(releases.items()))
    others = [] if path.is_file() else sorted(folder.name for folder in path.glob("lib/modules/*"))
    configuration = _configuration(image, _configs_beside(image, release), zstd)
    _require(asked, image, configuration, with_modules=False)
    if others and configuration is None:
        raise PlanError(
            f"kernel {asked}: no modules of {release}, which {image} is, but of {', '.join(others)}; in a build folder "
            f"`make modules_install INSTALL_MOD_PATH=.` puts them there"
        )
    return GuestKernel(
        asked=asked,
        release=release,
        image=image,
        modules=None,
        origin=str(path),
        digest=sha256_of(image),
        configuration=configuration,
    )


def _configs_beside(image: Path, release: str) -> Iterator[Path]:
    """`config-R` beside an image, and the `.config` of the build folder that it lies in."""
    real = image.resolve()
    yield real.with_name(f"config-{release}")
    for folder in real.parents[:4]:
        if text_of(folder / _RELEASE_FILE) == release:
            yield folder / ".config"


def _configuration(
    image: Path, files: tuple[Path, ...] | Iterator[Path], zstd: Tool | None
) -> Configuration | None:
    """A file beside it, else the one in the image."""
    for file in files:
        if (found := read_configuration(file)) is not None:
            return found
    with contextlib.suppress(ImageUnread):
        text = embedded_configuration(image, commands=Commands(), zstd=zstd)
        return None if text is None else Configuration(text, f"{image} (CONFIG_IKCONFIG)")
    return None


def _require(asked: str, image: Path, configuration: Configuration | None, *, with_modules: bool) -> None:
    """RequirementMissing with every option that a guest needs and the kernel lacks, as far as its configuration is known."""
    reasons = []
    if is_vmlinux(image) and not has_pvh_entry(image):
        reasons.append("CONFIG_PVH is not set: QEMU begins a vmlinux by it; a bzImage needs none")
    if configuration is not None:
        reasons += lacking(configuration, EVERY_GUEST, with_modules=with_modules)
    if not reasons:
        return
    place = "" if configuration is None else f" (by {configuration.place})"
    way_out = "build the kernel with them, docs/KERNELS.md has the list" + (
        "" if with_modules else "; or put its modules beside it: `make modules_install INSTALL_MOD_PATH=.`"
    )
    raise RequirementMissing(f"kernel {asked} cannot run a guest{place}", *reasons, way_out)


def _pairs(path: Path) -> Iterator[tuple[Path, Path]]:
    """Folders of modules with their images; of several images of one release the first named above counts."""
    if path.is_file():
        images, tops = [path], list(path.resolve().parents)
    else:
        images = [image for pattern in _IMAGES for image in sorted(path.glob(pattern)) if image.is_file()]
        # The folder of the modules may be named itself.
        tops = [path, path.parents[2]] if path.parent.name == "modules" else [path]
    folders = [folder for top in tops for folder in sorted(top.glob("lib/modules/*")) if folder.is_dir()]
    if path.parent.name == "modules":
        folders = [folder for folder in folders if folder == path]
    for image in reversed(images):
        release = release_in_image(image)
        if release is None:
            # An image that does not say: by the name of the file, or the only modules that there are.
            named = [folder for folder in folders if image.name.endswith(f"-{folder.name}")]
            named += [folder for folder in folders if folder == image.parent]
            fitting = named[:1] or (folders if len(folders) == 1 else [])
        else:
            fitting = [folder for folder in folders if folder.name == release][:1]
        for folder in fitting:
            yield folder, image


def _digest(modules: Path, image: Path) -> str:
    """Of the image's content, and of each module's name, size and time: a build anew changes them."""
    state = hashlib.sha256(sha256_of(image).encode())
    for name in ("modules.dep", "modules.builtin"):
        state.update(text_of(modules / name).encode())
    for line in text_of(modules / "modules.dep").splitlines():
        name = line.partition(":")[0]
        facts = (modules / name).stat() if (modules / name).is_file() else None
        state.update(f"{name} {facts and (facts.st_size, facts.st_mtime_ns)}\n".encode())
    return state.hexdigest()
