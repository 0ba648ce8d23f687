"""Which class of durability fits a machine's device."""

from __future__ import annotations

import pytest

from bedplate.cuts.records import CACHE_OF_PROFILE, Profile
from bedplate.model.device_cache import (
    CACHES,
    PROTECTED,
    VOLATILE_4K,
    VOLATILE_512,
    least_sector_bytes,
    outside,
    sector_bytes_of,
    sectors_told,
    volatile_cache_of,
)
from bedplate.model.durability import worse
from bedplate.model.levels import Scalar
from bedplate.model.visit import Durability

DISK: dict[str, Scalar] = {"kind": "block device", "physical_block_size": 4096}
FILE: dict[str, Scalar] = {"kind": "image file on a loop device", "physical_block_size": 4096}


def journal(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    return {f"journal_device_{name}": value for name, value in facts.items()}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (DISK, 4096),
        # What a loop device says of itself is the kernel's choice.
        (FILE, None),
        ({**FILE, "backing_physical_block_size": 512}, 512),
        ({**FILE, "backing_physical_block_size": "unknown"}, None),
        # A loop device of the user's own.
        ({**DISK, "backing_physical_block_size": "unknown"}, None),
        ({"kind": "image file on a virtio disk", "physical_block_size": 512}, None),
        ({**DISK, "physical_block_size": "none"}, None),
        ({}, None),
        # What an external journal lies on counts as well, but for memory, which no power cut keeps.
        ({**DISK, **journal(DISK)}, 4096),
        ({**DISK, **journal({**DISK, "physical_block_size": 512})}, 512),
        ({**DISK, **journal(FILE)}, None),
        ({**DISK, **journal({**FILE, "kind": "memory behind a loop device"})}, 4096),
        ({**DISK, **journal({**DISK, "kind": "memory on a virtio disk"})}, 4096),
    ],
)
def test_sectors_are_those_of_a_disk_or_not_known(facts: dict[str, Scalar], expected: int | None) -> None:
    assert expected == sector_bytes_of(facts)


@pytest.mark.parametrize(("told", "expected"), [({"disk_sector_bytes": "4096"}, 4096), ({}, None)])
def test_the_sectors_under_a_guests_disk_are_known_outside_alone(
    told: dict[str, str], expected: int | None
) -> None:
    inside: dict[str, Scalar] = {"kind": "block device", "physical_block_size": 512}
    provenance = {"disk": "image file on a virtio disk", **told}
    facts = {**inside, **outside(provenance, "disk")}
    assert ("image file on a virtio disk", expected) == (facts["kind"], sector_bytes_of(facts))
    assert {} == outside(provenance, "journal_disk") == outside({}, "disk")


def test_of_several_devices_the_smallest_counts_and_one_unknown_is_all_unknown() -> None:
    assert (512, None, None) == (
        least_sector_bytes([4096, 512]),
        least_sector_bytes([4096, None]),
        least_sector_bytes([]),
    )


@pytest.mark.parametrize(
    ("sector_bytes", "cache"),
    [
        (None, VOLATILE_512),
        (512, VOLATILE_512),
        (2048, VOLATILE_512),
        (4096, VOLATILE_4K),
        (16384, VOLATILE_4K),
    ],
)
def test_what_is_not_known_promises_least(sector_bytes: int | None, cache: str) -> None:
    assert cache == volatile_cache_of(sector_bytes)
    assert ("not known" in sectors_told(sector_bytes)) is (sector_bytes is None)


def test_every_profile_is_of_one_cache() -> None:
    assert set(Profile) == set(CACHE_OF_PROFILE)
    assert set(CACHES) == set(CACHE_OF_PROFILE.values())


def test_a_declared_class_holds_for_all_sectors_and_the_worse_of_two_keeps_them_apart() -> None:
    declared = Durability("durable", "durable", "declared")
    torn = Durability("durable", "durable", "measured", volatile_cache_512="unsafe")
    assert (False, True) == (declared.tells_sectors, torn.tells_sectors)
    found = worse(declared, torn)
    assert ("durable", "unsafe", "durable") == tuple(
        found.class_with(cache) for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)
    )
    assert worse(declared, declared).volatile_cache_512 is None
