from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from tests.support.guests.fake_distribution import bz_image
from tests.support.guests.own_kernels import guest_configuration, kernel_with, packed_image, vmlinux

from bedplate.errors import PlanError, RequirementMissing
from bedplate.executors.qemu.kernels import find_kernel, read_self_built


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    return path


def modules_of(top: Path, release: str, folder: str = "lib/modules") -> Path:
    place = top / folder / release
    put(place / "kernel/fs/ext4/ext4.ko", "module")
    put(place / "modules.dep", "kernel/fs/ext4/ext4.ko:\n")
    put(place / "modules.builtin")
    return place


@pytest.mark.parametrize(
    "image",
    [
        "arch/x86/boot/bzImage",
        "boot/vmlinuz-6.18.0-mine",
        "vmlinuz-6.18.0-mine",
        "vmlinuz",
        "lib/modules/6.18.0-mine/vmlinuz",
    ],
)
def test_the_folder_of_a_kernel_is_enough(tmp_path: Path, image: str) -> None:
    modules_of(tmp_path, "6.18.0-mine")
    file = put(tmp_path / image, bz_image("6.18.0-mine"))
    kernel = read_self_built(str(tmp_path))
    assert (kernel.release, kernel.image, kernel.modules) == ("6.18.0-mine", file, tmp_path)
    assert kernel.origin == str(tmp_path)
    assert kernel.asked == str(tmp_path)


def test_find_kernel_takes_a_path_without_a_cache(tmp_path: Path) -> None:
    modules_of(tmp_path, "6.18.0")
    put(tmp_path / "vmlinuz", bz_image("6.18.0"))
    found = find_kernel(str(tmp_path), cache_directory=tmp_path / "none")
    assert found == read_self_built(str(tmp_path))


def test_the_image_itself_or_the_folder_of_the_modules_may_be_named(tmp_path: Path) -> None:
    place = modules_of(tmp_path, "6.18.0")
    modules_of(tmp_path, "6.17.0")
    image = put(tmp_path / "boot/vmlinuz-6.18.0", bz_image("6.18.0"))
    put(tmp_path / "boot/vmlinuz-6.17.0", bz_image("6.17.0"))
    kernel = read_self_built(str(image))
    assert (kernel.release, kernel.modules, kernel.image) == ("6.18.0", tmp_path, image)
    beside = put(place / "vmlinuz", bz_image("6.18.0"))
    kernel = read_self_built(str(place))
    assert (kernel.release, kernel.modules, kernel.image) == ("6.18.0", tmp_path, beside)


def test_between_several_kernels_the_builds_own_word_decides(tmp_path: Path) -> None:
    for release in ("6.17.0", "6.18.0"):
        modules_of(tmp_path, release)
        put(tmp_path / f"boot/vmlinuz-{release}", bz_image(release))
    with pytest.raises(PlanError, match=r"several kernels; name the image of one: .*6\.17\.0, .*6\.18\.0"):
        read_self_built(str(tmp_path))
    put(tmp_path / "include/config/kernel.release", "6.18.0\n")
    assert read_self_built(str(tmp_path)).release == "6.18.0"


def test_modules_of_another_release_do_not_serve(tmp_path: Path) -> None:
    modules_of(tmp_path, "6.17.0")
    put(tmp_path / "arch/x86/boot/bzImage", bz_image("6.18.0"))
    with pytest.raises(PlanError, match=r"no modules of 6\.18\.0.* but of 6\.17\.0; .*modules_install"):
        read_self_built(str(tmp_path))


def test_an_image_that_does_not_say_its_release_is_known_by_its_name(tmp_path: Path) -> None:
    modules_of(tmp_path, "6.17.0")
    modules_of(tmp_path, "6.18.0")
    put(tmp_path / "boot/vmlinuz-6.18.0", "an image for another processor")
    assert read_self_built(str(tmp_path)).release == "6.18.0"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/no/such/kernel", "there is no such path; name an image, or the folder of a build"),
        ("relative/kernel", "not a path from the root"),
        ("./kernel", "not a path from the root"),
    ],
)
def test_a_path_that_is_not_there_or_not_whole_is_refused_with_that_reason_alone(
    path: str, words: str
) -> None:
    with pytest.raises(PlanError, match=f"kernel {path}: {words}"):
        read_self_built(path)


def test_modules_without_depmod_say_how_it_is_run(tmp_path: Path) -> None:
    (modules_of(tmp_path, "6.18.0") / "modules.dep").unlink()
    put(tmp_path / "vmlinuz", bz_image("6.18.0"))
    with pytest.raises(RequirementMissing, match=f"`depmod --basedir {tmp_path} 6.18.0`"):
        read_self_built(str(tmp_path))


@pytest.mark.parametrize("config", [".config", "boot/config-6.18.0", "lib/modules/6.18.0/config"])
def test_the_configuration_is_found(tmp_path: Path, config: str) -> None:
    modules_of(tmp_path, "6.18.0")
    put(tmp_path / "vmlinuz", bz_image("6.18.0"))
    assert read_self_built(str(tmp_path)).configuration is None
    file = put(tmp_path / config, guest_configuration(PSI="y"))
    found = read_self_built(str(tmp_path)).configuration
    assert found is not None
    assert (found.place, found.value("PSI")) == (str(file), "y")


def test_a_build_anew_is_another_kernel(tmp_path: Path) -> None:
    place = modules_of(tmp_path, "6.18.0")
    image = put(tmp_path / "vmlinuz", bz_image("6.18.0"))
    digests = [read_self_built(str(tmp_path)).digest]
    assert digests[0] == read_self_built(str(tmp_path)).digest
    module = place / "kernel/fs/ext4/ext4.ko"
    module.write_bytes(b"changed")
    os.utime(module, ns=(1, 1))
    digests.append(read_self_built(str(tmp_path)).digest)
    with image.open("ab") as file:
        file.write(b"changed")
    digests.append(read_self_built(str(tmp_path)).digest)
    assert len(set(digests)) == 3


def alone(path: Path, configuration: str | None, release: str = "6.12.1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed_image(release, gzip.compress(kernel_with(configuration, release))))
    return path


def test_an_image_alone_that_has_all_built_in_is_a_kernel(tmp_path: Path) -> None:
    image = alone(tmp_path / "bzImage", guest_configuration(EXT4_FS="y"))
    kernel = read_self_built(str(image))
    assert (kernel.release, kernel.image, kernel.modules) == ("6.12.1", image, None)
    assert kernel.configuration is not None
    assert kernel.configuration.place == f"{image} (CONFIG_IKCONFIG)"
    assert read_self_built(str(tmp_path)).digest == kernel.digest


def test_every_option_that_a_guest_lacks_is_named_before_the_boot(tmp_path: Path) -> None:
    image = alone(tmp_path / "bzImage", guest_configuration(_9P_FS="n", VIRTIO_BLK="m", DEVTMPFS="n"))
    with pytest.raises(RequirementMissing) as refused:
        read_self_built(str(image))
    first, *options, way_out = refused.value.reasons
    assert first == f"kernel {image} cannot run a guest (by {image} (CONFIG_IKCONFIG))"
    assert options == [
        "CONFIG_DEVTMPFS is not set: the files of devices",
        "CONFIG_VIRTIO_BLK is a module (=m), and no modules are beside the image: the guest's disks",
        "CONFIG_9P_FS is not set: the folders of the host",
    ]
    assert "modules_install" in way_out


def test_options_that_are_modules_serve_where_the_modules_are_there_and_no_others(tmp_path: Path) -> None:
    modules_of(tmp_path, "6.12.1")
    alone(tmp_path / "vmlinuz", guest_configuration(VIRTIO_BLK="m"))
    assert read_self_built(str(tmp_path)).modules == tmp_path
    alone(tmp_path / "vmlinuz", guest_configuration(VIRTIO_BLK="m", DEVTMPFS="m"))
    with pytest.raises(RequirementMissing, match=r"CONFIG_DEVTMPFS is a module \(=m\), and must be built in"):
        read_self_built(str(tmp_path))


def test_an_image_that_holds_no_configuration_is_taken_at_its_word(tmp_path: Path) -> None:
    kernel = read_self_built(str(alone(tmp_path / "bzImage", None)))
    assert (kernel.release, kernel.configuration) == ("6.12.1", None)


@pytest.mark.parametrize("place", ["config-6.12.1", "../../../.config"])
def test_the_configuration_beside_an_image_alone_is_found(tmp_path: Path, place: str) -> None:
    image = alone(tmp_path / "arch/x86/boot/bzImage", None)
    put(tmp_path / "include/config/kernel.release", "6.12.1\n")
    put(image.parent / place, guest_configuration(SYSVIPC="n"))
    for asked in (tmp_path, image):
        with pytest.raises(RequirementMissing, match="CONFIG_SYSVIPC is not set: servers and their clients"):
            read_self_built(str(asked))


def test_the_configuration_of_another_build_says_nothing(tmp_path: Path) -> None:
    image = alone(tmp_path / "arch/x86/boot/bzImage", None)
    put(tmp_path / "include/config/kernel.release", "6.13.0\n")
    put(tmp_path / ".config", guest_configuration(SYSVIPC="n"))
    assert read_self_built(str(image)).configuration is None


def test_a_vmlinux_needs_the_entry_by_which_qemu_begins_it(tmp_path: Path) -> None:
    image = tmp_path / "vmlinux"
    image.write_bytes(vmlinux(kernel_with(guest_configuration(), "6.13.0"), pvh=True))
    assert read_self_built(str(image)).release == "6.13.0"
    assert read_self_built(str(tmp_path)).image == image
    image.write_bytes(vmlinux(kernel_with(guest_configuration(), "6.13.0"), pvh=False))
    with pytest.raises(RequirementMissing, match="CONFIG_PVH is not set"):
        read_self_built(str(image))


def test_a_file_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    file = put(tmp_path / "bzImage", "not a kernel")
    with pytest.raises(PlanError, match="none that says its release"):
        read_self_built(str(file))


def test_several_images_without_modules_are_for_the_user_to_choose_from(tmp_path: Path) -> None:
    for release in ("6.12.1", "6.13.0"):
        alone(tmp_path / f"vmlinuz-{release}", guest_configuration(), release)
    with pytest.raises(PlanError, match=r"several kernels; name the image of one: .*6\.12\.1, .*6\.13\.0"):
        read_self_built(str(tmp_path))
