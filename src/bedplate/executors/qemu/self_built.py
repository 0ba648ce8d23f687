"""A kernel of the user's own: an image and its modules, in the layouts that builds leave behind.

    SOURCE/arch/x86/boot/bzImage, SOURCE/lib/modules/R    a build folder after
                                                          `make modules_install INSTALL_MOD_PATH=.`
    TREE/boot/vmlinuz-R, TREE/lib/modules/R               `make install modules_install` into a folder,
                                                          or an unpacked package; also the machine itself
    lib/modules/R/vmlinuz                                 the image beside its modules, as Fedora has it

The path names the folder, the folder of the modules, or the image itself. Nothing is written there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError, RequirementMissing
from bedplate.executors.qemu.guest_kernel import GuestKernel
from bedplate.executors.qemu.kernel_release import release_in_image
from bedplate.host.files import sha256_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMAGES = (
    *("arch/x86/boot/bzImage", "arch/arm64/boot/Image"),
    *("boot/vmlinuz-*", "vmlinuz-*", "vmlinuz", "bzImage", "lib/modules/*/vmlinuz"),
)
# What the build writes down as its own release.
_RELEASE_FILE = "include/config/kernel.release"


def read_self_built(asked: str) -> GuestKernel:
    """The kernel at this path; PlanError says what is not there, or between which ones to choose."""
    path = Path(asked)
    if not path.is_absolute() or not path.exists():
        raise PlanError(f"kernel {asked}: there is no such path (it must be absolute)")
    try:
        pairs = dict(_pairs(path))
    except OSError as error:
        raise PlanError(f"kernel {asked} cannot be read: {error.filename}: {error.strerror}") from error
    built = text_of(path / _RELEASE_FILE)
    if len(pairs) > 1 and built in {folder.name for folder in pairs}:
        pairs = {folder: image for folder, image in pairs.items() if folder.name == built}
    if not pairs:
        raise PlanError(
            f"kernel {asked}: no image (arch/x86/boot/bzImage, boot/vmlinuz-R, lib/modules/R/vmlinuz) with "
            f"its modules (lib/modules/R); in a build folder `make modules_install INSTALL_MOD_PATH=.` puts "
            f"them there"
        )
    if len(pairs) > 1:
        images = ", ".join(sorted(str(image) for image in pairs.values()))
        raise PlanError(f"kernel {asked} has several kernels; name the image of one: {images}")
    ((modules, image),) = pairs.items()
    return _kernel(asked, path, modules, image)


def _kernel(asked: str, path: Path, modules: Path, image: Path) -> GuestKernel:
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
    return GuestKernel(
        asked=asked,
        release=modules.name,
        image=image,
        modules=top,
        origin=str(path),
        digest=_digest(modules, image),
        config=next((file for file in configs if file.is_file()), None),
    )


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
