"""The commands that judge a study: comparisons, effects, advice, claims.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from bedplate.cli.completion import OneOf
from bedplate.cli.options import (
    ACCEPT,
    ACROSS_DURABILITY,
    AS_JSON,
    CELLS,
    CLAIMS,
    METRICS,
    OF_WORKLOAD,
    STUDY_DIRECTORIES,
    STUDY_DIRECTORY,
    claim_files,
)
from bedplate.cli.studies import require_studies
from bedplate.errors import EXIT_DONE, StudyError
from bedplate.registry import WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@STUDY_DIRECTORIES
@click.option(
    "--baseline", metavar="FILTER", required=True, help="what to compare with: `type=ext4 barrier=yes`"
)
@click.option(
    "--contender", metavar="FILTER", required=True, help="what is compared with it: `type=xfs,btrfs`"
)
@OF_WORKLOAD
@METRICS
@click.option("--margin", metavar="SHARE", default="5%", help="what counts as the same, either way")
@click.option(
    "--factor",
    "factors",
    metavar="NAME",
    multiple=True,
    type=OneOf(["kernel", "build", "tools", "zfs", "qemu", "host_kernel", "machine", "disk", "dataset"]),
    help="what differs between the studies on purpose: kernel, build, tools, zfs, qemu, host_kernel, machine, disk, dataset",
)
@ACCEPT
@click.option(
    "--fail-if",
    metavar="CONDITION",
    help="'slower 5%': exit with 1 where it holds, with 125 where it is not known",
)
@ACROSS_DURABILITY
@CELLS
@AS_JSON
def compare(
    studies: tuple[Path, ...],
    *,
    baseline: str,
    contender: str,
    workload: str | None,
    metrics: tuple[str, ...],
    margin: str,
    factors: tuple[str, ...],
    accepted: tuple[str, ...],
    fail_if: str | None,
    across_durability: bool,
    cells: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare cells that differ only in what two filters name: ratio, interval, verdict.

    First one line over all matched pairs of a durability class and what they disagree in, then the pairs.

    A FILTER is one or more name=level, several levels with commas, or a cell's id or label: `filesystem.type=ext4
    barrier=no`, `block_size=4k,8k`, `class=durable` (what a power cut leaves). A factor may be named by its end where that is one factor,
    the two block sizes as `fs` and `db`. `study=DIRECTORY` chooses among several studies, and pairs them; they get a verdict where they are comparable.

    CONDITION is slower, faster, worse, better, lower or higher, by a share; without one by the margin. Exit codes
    with it: 0 it does not hold, 1 it holds of a comparison, 125 it is not known, as where a study is missing. `git
    bisect run` takes 125 for a commit that cannot be tested. It would take 2 (a wrong option) for a bad commit, so try
    the command once by hand.
    """
    from bedplate.cli.comparing import bisectable  # noqa: PLC0415

    with nullcontext() if fail_if is None else bisectable():
        studies = require_studies(studies)
        from bedplate.analysis.comparison.condition import exit_status, parse_condition, parse_share, truth  # noqa: PLC0415

        # What is not understood is refused before a study is read.
        share = parse_share(margin)
        condition = None if fail_if is None else parse_condition(fail_if, margin=share)

        from bedplate.analysis.comparison.compared import ComparisonQuestion, answer  # noqa: PLC0415
        from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415
        from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
        from bedplate.terminal.compare_tables import compare_document, compare_tables  # noqa: PLC0415

        question = ComparisonQuestion(
            baseline, contender, workload, metrics, share, factors, accepted, across_durability
        )
        found = answer(selected_overviews(studies, cells), question)
        if as_json:
            print_json(compare_document(found, condition))
        else:
            print_tables(compare_tables(found, condition))
        if condition is None:
            return EXIT_DONE
        return exit_status(truth(condition, each) for each in found.compared)


@click.command()
@STUDY_DIRECTORY
@OF_WORKLOAD
@METRICS
@ACCEPT
@ACROSS_DURABILITY
@CELLS
@AS_JSON
def effects(
    study: Path,
    *,
    workload: str | None,
    metrics: tuple[str, ...],
    accepted: tuple[str, ...],
    across_durability: bool,
    cells: tuple[str, ...],
    as_json: bool,
) -> None:
    """What each factor of a study matters: its share of the variation, ratios of its levels, interactions.

    Cells are held against each other within one durability class. What only one file system has is judged within it,
    and held at its usual level where file systems are compared. Of a search it is what the model says, as its cells were
    chosen: by how much the best level of each factor is better than the worst.
    """
    (study,) = require_studies([study])
    from bedplate.analysis.comparison.accepted import accepting  # noqa: PLC0415
    from bedplate.analysis.effects.factor_effects import study_effects  # noqa: PLC0415
    from bedplate.analysis.search.marks import DOUBTS_OF_A_SEARCH, is_chosen  # noqa: PLC0415
    from bedplate.analysis.search.searched import search_of  # noqa: PLC0415
    from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.effects_tables import effects_document, effects_tables  # noqa: PLC0415
    from bedplate.terminal.searched_cells import modelled_effects, modelled_effects_document  # noqa: PLC0415

    (narrowed,) = selected_overviews([study], cells)
    if accepted and is_chosen(narrowed.study):
        raise StudyError(DOUBTS_OF_A_SEARCH)
    search = search_of(narrowed) if is_chosen(narrowed.study) and not (workload or metrics) else None
    if search is not None:
        if as_json:
            print_json(modelled_effects_document(search))
        else:
            print_tables(modelled_effects(search))
        return
    (counted,) = accepting([narrowed], accepted)
    found = study_effects(counted, workload=workload, metrics=metrics, across_durability=across_durability)
    if as_json:
        print_json(effects_document(found))
    else:
        print_tables(effects_tables(found))


@click.command()
@STUDY_DIRECTORY
@click.option(
    "--workload",
    "workloads",
    metavar="NAME",
    multiple=True,
    help=f"only this run, or where none is called so the runs of this type: {', '.join(WORKLOADS)}; may be given again",
)
@click.option(
    "--durability",
    type=OneOf(["durable", "bounded loss", "unsafe", "unknown"]),
    metavar="CLASS",
    help="only cells of this class: durable, 'bounded loss', unsafe, unknown; without it the first two",
)
@click.option(
    "--cache",
    type=OneOf(["volatile", "volatile-4k", "volatile-512", "protected"]),
    default="volatile",
    help="the device's cache: volatile (with its own sectors, or those named), or one that survives a power cut",
)
@ACCEPT
@CELLS
@AS_JSON
def advise(
    study: Path,
    *,
    workloads: tuple[str, ...],
    durability: str | None,
    cache: str,
    accepted: tuple[str, ...],
    cells: tuple[str, ...],
    as_json: bool,
) -> None:
    """Which cells to choose among those that are equally durable, and what to measure next.

    On more than speed, as far as the runs have it: p99, steadiness across checkpoints, space, what is written. From
    comparisons that hold together, not from point estimates: with two repetitions there is no recommendation. Of a search it is
    what the search answers.
    """
    (study,) = require_studies([study])
    from bedplate.analysis.advice.advised import advised  # noqa: PLC0415
    from bedplate.analysis.comparison.accepted import accepting  # noqa: PLC0415
    from bedplate.analysis.search.answer import answer_document, answer_lines  # noqa: PLC0415
    from bedplate.analysis.search.marks import DOUBTS_OF_A_SEARCH, NO_ADVICE_OF_A_SEARCH, is_chosen  # noqa: PLC0415
    from bedplate.analysis.search.searched import search_of  # noqa: PLC0415
    from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables, say  # noqa: PLC0415
    from bedplate.terminal.advice_tables import advice_document, advice_tables  # noqa: PLC0415

    (narrowed,) = selected_overviews([study], cells)
    if is_chosen(narrowed.study):
        if accepted:
            raise StudyError(DOUBTS_OF_A_SEARCH)
        # The best of chosen means is too good to be taken for the best.
        search = search_of(narrowed) if not (workloads or durability) else None
        if search is None:
            raise StudyError(*NO_ADVICE_OF_A_SEARCH)
        if as_json:
            print_json(answer_document(search))
        else:
            for line in answer_lines(search):
                say(line)
        return
    (counted,) = accepting([narrowed], accepted)
    found = advised(counted, workloads=workloads, durability=durability, cache=cache)
    if as_json:
        print_json(advice_document(found))
    else:
        print_tables(advice_tables(found))


@click.command()
@STUDY_DIRECTORIES
@CLAIMS
@ACCEPT
@AS_JSON
def claims(
    studies: tuple[Path, ...], *, files: tuple[Path, ...], accepted: tuple[str, ...], as_json: bool
) -> None:
    """What the original studies concluded, or you do: holds, does not hold, cannot tell, or not measured.

    Each claim is judged in every study that measured it; all findings together keep the false discovery rate.
    """
    studies = require_studies(studies)
    from bedplate.analysis.claims.file import load_claims  # noqa: PLC0415

    # A file that is wrong is refused before a study is read.
    loaded = load_claims(claim_files(files))

    from bedplate.analysis.claims.judged import judge_claims  # noqa: PLC0415
    from bedplate.analysis.comparison.accepted import accepting  # noqa: PLC0415
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.claim_tables import claim_tables, claims_document  # noqa: PLC0415

    found = judge_claims(accepting([overview(path) for path in studies], accepted), loaded)
    if as_json:
        print_json(claims_document(found))
    else:
        print_tables(claim_tables(found))
