from __future__ import annotations

from bedplate.statistics.comparison import NAMES, differences

ONE = {
    "machine": "m",
    "executor": "qemu",
    "accelerator": "tcg",
    "kernel": "6.12.9",
    "kernel_digest": "one",
    "host_kernel": "6.18",
    "build": "b",
}


def test_what_is_alike_is_comparable() -> None:
    assert () == differences([])
    assert () == differences([ONE])
    assert () == differences([ONE, dict(ONE)])


def test_each_difference_is_named_with_what_was_found() -> None:
    for key, name in NAMES.items():
        first, second = {**ONE, key: "a"}, {**ONE, key: "b"}
        assert (f"{name}: a, b",) == differences([first, second])


def test_a_declared_factor_is_no_difference() -> None:
    other = {**ONE, "kernel": "6.1.0", "kernel_digest": "another", "accelerator": "kvm"}
    assert ("accelerator: kvm, tcg",) == differences([ONE, other], declared=["kernel"])


def test_what_is_not_known_differs_from_nothing() -> None:
    assert () == differences([ONE, {"machine": "m"}])


def test_what_is_a_name_for_the_plan_or_a_seed_does_not_count() -> None:
    assert () == differences([{**ONE, "plan": "p"}, {**ONE, "plan": "q"}])
