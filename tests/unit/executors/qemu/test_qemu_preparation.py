"""What is had before the first visit in a guest: one kernel that cannot be built is no reason against the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bedplate.errors import CommandFailed, VerifyFailed
from bedplate.executors.qemu import executor
from bedplate.executors.qemu.executor import prepare_kernels
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.model.cell import KernelSource, SourceCommit, SourceTree


class Heard:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def preparing(self, step: str, current: int, total: int) -> None:
        pass


def source(digit: str, subject: str) -> KernelSource:
    return KernelSource(SourceTree("~/linux", "/home/me/linux", "v1", SourceCommit(digit * 40, subject)))


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The kernels that were to be had, in order; `6.99` cannot, nor can commits that say so."""
    found: list[str | None] = []

    def ensure(asked: str | None, *, source: KernelSource | None = None, **_: Any) -> GuestKernel:
        found.append(asked)
        if asked is not None and "breaks" in asked:
            raise CommandFailed(
                f"building kernel {asked} failed: no such thing", argv=("make",), status=2, output=""
            )
        if asked is not None and "loses" in asked:
            raise VerifyFailed(f"kernel {asked} was not built", "CONFIG_9P_FS=y did not survive")
        if asked == "6.99":
            raise CommandFailed("apt-get ended with status 100", argv=("apt-get",), status=100, output="")
        return GuestKernel(asked, "6.12.1", Path("/x"), None, "a test", "d", None)

    monkeypatch.setattr(executor, "ensure_kernel", ensure)
    monkeypatch.setattr(executor, "find_kernel", lambda *_, **__: None)
    monkeypatch.setattr(executor, "_FAILED", {})
    return found


def test_a_build_that_fails_is_said_and_the_next_kernel_is_built(tried: list[str | None]) -> None:
    broken, lost, good = source("a", "it breaks"), source("b", "it loses"), source("c", "it is good")
    sources = {each.level: each for each in (broken, lost, good)}
    heard = Heard()
    found = prepare_kernels((*sources, "6.12"), heard, sources)
    assert [kernel.asked for kernel in found.kernels] == [good.level, "6.12"]
    assert list(found.failed) == [broken.level, lost.level]
    assert found.failed[lost.level][1] == "CONFIG_9P_FS=y did not survive"
    assert any("no such thing" in note for note in heard.notes)
    assert tried == [*sources, "6.12"]


def test_a_build_that_failed_is_not_tried_again_by_the_same_start(tried: list[str | None]) -> None:
    broken = source("a", "it breaks")
    first = prepare_kernels((broken.level,), Heard(), {broken.level: broken})
    assert prepare_kernels((broken.level,), Heard(), {broken.level: broken}).failed == first.failed
    assert prepare_kernels((broken.level,), Heard()).failed == first.failed
    assert tried == [broken.level]


def test_a_commit_whose_tree_nobody_names_is_not_there(tried: list[str | None]) -> None:
    level = source("d", "elsewhere").level
    assert "does not name its tree" in prepare_kernels((level,), Heard()).failed[level][0]
    assert tried == []


def test_a_kernel_of_the_distribution_that_cannot_be_had_ends_the_start(tried: list[str | None]) -> None:
    with pytest.raises(CommandFailed, match="apt-get"):
        prepare_kernels(("6.99",), Heard())
    assert tried == ["6.99"]
