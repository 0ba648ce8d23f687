"""`bedplate ask` and `bedplate quickstart`: a question, its plan, a start of a study, and the answer.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.options import DIRECTORY, ON_USUAL, PATH, RETRY_FAILED, YES, on_types, words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.decorators import FC


def _repetitions(without: int) -> Callable[[FC], FC]:
    return click.option(
        "--repetitions",
        metavar="N",
        type=click.IntRange(1, 1000),
        help=f"how often each cell is visited; without it {without}",
    )


_yes = click.option("--yes", is_flag=True, help="do it without asking, missing packages included")


@click.command()
@click.option(
    "--directory",
    metavar="DIR",
    type=PATH,
    default=Path("bedplate-study"),
    help="where the study and the report go",
)
@YES
def quickstart(directory: Path, *, yes: bool) -> int:
    """From nothing to a first report: packages, PostgreSQL, plans/quick.toml on an image file."""
    from bedplate.cli.questioning import quickstart as begin  # noqa: PLC0415

    return begin(directory, yes=yes)


@click.group()
def ask() -> None:
    """Ask a question: a plan is written and shown with its time, run after a yes, and answered.

    Nothing of yours is erased: the scratch device is an image file beside the study.
    """


@ask.command(name="filesystem")
@ON_USUAL
@_repetitions(5)
@click.option("--scale", metavar="N", help="scale of the load (15 MB each), or a multiple as '4x memory'")
@DIRECTORY
@RETRY_FAILED
@_yes
def _filesystem(
    types: str,
    *,
    repetitions: int | None,
    scale: str | None,
    directory: Path | None,
    retry_failed: bool,
    yes: bool,
) -> int:
    """Which file system suits PostgreSQL, here: `ask filesystem`."""
    from bedplate.campaign.questions import filesystem_question  # noqa: PLC0415
    from bedplate.cli.questioning import answer  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    about = partial(filesystem_question, read_machine(), repetitions=repetitions, scale=scale)
    return answer(about, words_of(types), directory, yes=yes, retry_failed=retry_failed)


@ask.command(name="kernel")
@click.argument(
    "kernels", metavar="KERNEL...", nargs=-1, required=True, help="versions, releases or paths: 6.1 6.12"
)
@on_types("ext4")
@_repetitions(3)
@DIRECTORY
@RETRY_FAILED
@_yes
def _kernel(
    kernels: tuple[str, ...],
    types: str,
    *,
    repetitions: int | None,
    directory: Path | None,
    retry_failed: bool,
    yes: bool,
) -> int:
    """Did a kernel make it slower: `ask kernel 6.1 6.12 --on ext4`, in guests of QEMU, without root."""
    from bedplate.campaign.questions import kernel_question  # noqa: PLC0415
    from bedplate.cli.questioning import answer  # noqa: PLC0415

    about = partial(kernel_question, kernels, repetitions=repetitions)
    return answer(about, words_of(types), directory, yes=yes, retry_failed=retry_failed)


@ask.command(name="safe")
@click.argument(
    "words",
    metavar="[DATADIR|SETTING=VALUE]...",
    nargs=-1,
    help="a server's data directory, or settings of PostgreSQL: full_page_writes=off",
)
@ON_USUAL
@click.option(
    "--points",
    metavar="N",
    type=click.IntRange(4, 100_000),
    help="how often the power of each is cut (default: 160 of one recording, 80 of two or three, else 40)",
)
@DIRECTORY
@RETRY_FAILED
@_yes
def _safe(
    words: tuple[str, ...],
    types: str,
    *,
    points: int | None,
    directory: Path | None,
    retry_failed: bool,
    yes: bool,
) -> int:
    """Is it safe after a power cut: `ask safe full_page_writes=off --on ext4,xfs,btrfs`.

    A setting that is on or off is asked about beside its opposite. Several change together. With a data directory, or nothing
    where one server runs: is it safe as it runs now, with its settings.
    """
    from bedplate.campaign.questions import asked_settings, safe_question  # noqa: PLC0415
    from bedplate.cli.questioning import answer, own_server  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    if not types and all("=" not in word for word in words):
        return answer(own_server(words, points=points), (), directory, yes=yes, retry_failed=retry_failed)
    about = partial(safe_question, read_machine(), asked_settings(words), points=points)
    return answer(about, words_of(types), directory, yes=yes, retry_failed=retry_failed)
