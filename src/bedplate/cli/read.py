"""The commands that judge a study: comparisons, effects, advice, claims.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bedplate.cli.options import (
    ACCEPT,
    ACROSS_DURABILITY,
    AS_JSON,
    CELLS,
    EXIT_BY_IT,
    METRIC_NAME,
    METRICS,
    NOT_WORSE,
    OF_WORKLOAD,
    PATH,
    STUDY_DIRECTORIES,
    STUDY_DIRECTORY,
    OneOf,
    claim_files,
    claims_option,
    condition_option,
    metric_names,
)
from bedplate.cli.printing import holds_several, require_studies, studies_below
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, PlanError, StudyError
from bedplate.host.ownership import first_made, give_to_caller
from bedplate.registry import WORKLOADS
from bedplate.units import format_count, format_size

if TYPE_CHECKING:
    from bedplate.campaign.questions import Inspected
    from bedplate.filesystem.standing import MountedPlace


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
@condition_option(f"'slower 5%', 'tps < 1000', unsafe, … (docs/COMMANDS.md): {EXIT_BY_IT}")
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
    """Compare two sets of cells: ratio, interval, verdict.

    The cells of a pair differ only in what the two filters name.

    First one line over all matched pairs of a durability class and what they disagree in, then the pairs.

    A FILTER is one or more name=level, several levels with commas, or a cell's id or label: `filesystem.type=ext4
    barrier=no`, `block_size=4k,8k`, `class=durable` (what a power cut leaves). A factor may be named by its end where that is one factor,
    the two block sizes as `fs` and `db`. `study=DIRECTORY` chooses among several studies, and pairs them; they get a verdict where they are comparable.

    CONDITION is slower, faster, worse, better, lower or higher, by a share (without one by the margin), of one metric where that is named before it;
    or it is about the contenders alone: `tps < 1000`, `unsafe`, `bad` (docs/COMMANDS.md). Exit codes
    with it: 0 it does not hold, 1 it holds of a comparison, 125 it is not known, as where a study is missing. `git
    bisect run` takes 125 for a commit that cannot be tested. It would take 2 (a wrong option) for a bad commit, so try
    the command once by hand.
    """
    from bedplate.cli.status import bisectable  # noqa: PLC0415

    with nullcontext() if fail_if is None else bisectable():
        studies = require_studies(studies)
        from bedplate.analysis.condition import answer_truths, exit_status, parse_condition, parse_share  # noqa: PLC0415

        # What is not understood is refused before a study is read.
        share = parse_share(margin)
        condition = None if fail_if is None else parse_condition(fail_if, margin=share)
        if condition is not None:
            metrics = tuple(dict.fromkeys((*metrics, *condition.metrics)))

        from bedplate.analysis.comparison import ComparisonQuestion, answer, selected_overviews  # noqa: PLC0415
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
        return exit_status(answer_truths(condition, found))


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
    """How much each factor of a study matters.

    Its share of the variation, the ratios of its levels, and interactions.

    Cells are held against each other within one durability class. What only one file system has is judged within it,
    and held at its usual level where file systems are compared. Of a search it is what the model says, as its cells were
    chosen: by how much the best level of each factor is better than the worst.
    """
    (study,) = require_studies([study])
    from bedplate.analysis.comparison import accepting, selected_overviews  # noqa: PLC0415
    from bedplate.analysis.effects import study_effects  # noqa: PLC0415
    from bedplate.analysis.overview import DOUBTS_OF_A_SEARCH, is_chosen  # noqa: PLC0415
    from bedplate.analysis.search import search_of  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.compare_tables import effects_document, effects_tables  # noqa: PLC0415
    from bedplate.terminal.tables import modelled_effects, modelled_effects_document  # noqa: PLC0415

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
@NOT_WORSE
@ACCEPT
@CELLS
@AS_JSON
def advise(
    study: Path,
    *,
    workloads: tuple[str, ...],
    durability: str | None,
    cache: str,
    not_worse: tuple[str, ...],
    accepted: tuple[str, ...],
    cells: tuple[str, ...],
    as_json: bool,
) -> None:
    """Which cell to choose, and what to measure next.

    It chooses among cells that are equally durable.

    The figure that a run is about ranks its cells. p99, steadiness across checkpoints, space and what is written are compared beside it, and
    limit the choice where --not-worse says so. From comparisons that hold together, not from point estimates: with two repetitions there is no
    recommendation. Of a search it is what the search answers.
    """
    (study,) = require_studies([study])
    from bedplate.analysis.advice import advised  # noqa: PLC0415
    from bedplate.analysis.answer import headline  # noqa: PLC0415
    from bedplate.analysis.comparison import accepting, selected_overviews  # noqa: PLC0415
    from bedplate.analysis.overview import DOUBTS_OF_A_SEARCH, NO_ADVICE_OF_A_SEARCH, is_chosen  # noqa: PLC0415
    from bedplate.analysis.search import answer_document, answer_lines, search_of  # noqa: PLC0415
    from bedplate.cli.ask import parse_not_worse  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables, say  # noqa: PLC0415
    from bedplate.terminal.advice_tables import advice_document, advice_tables  # noqa: PLC0415

    (narrowed,) = selected_overviews([study], cells)
    if is_chosen(narrowed.study):
        if accepted:
            raise StudyError(DOUBTS_OF_A_SEARCH)
        # The best of chosen means is too good to be taken for the best.
        search = search_of(narrowed) if not (workloads or durability or not_worse) else None
        if search is None:
            raise StudyError(*NO_ADVICE_OF_A_SEARCH)
        if as_json:
            print_json(answer_document(search))
        else:
            for line in answer_lines(search):
                say(line)
        return
    (counted,) = accepting([narrowed], accepted)
    limits = tuple(map(parse_not_worse, not_worse))
    found = advised(counted, workloads=workloads, durability=durability, cache=cache, not_worse=limits)
    answer = headline(counted, found)
    if as_json:
        print_json(advice_document(answer))
    else:
        print_tables(advice_tables(answer))


@click.command()
@STUDY_DIRECTORIES
@claims_option("--file", "--claims")
@ACCEPT
@AS_JSON
def claims(
    studies: tuple[Path, ...], *, files: tuple[Path, ...], accepted: tuple[str, ...], as_json: bool
) -> None:
    """Which conclusions hold, those of the original studies or yours.

    Each one holds, does not hold, is not known, or was not measured.

    Each claim is judged in every study that measured it; all findings together keep the false discovery rate.
    """
    studies = require_studies(studies)
    from bedplate.analysis.claims import load_claims  # noqa: PLC0415

    # A file that is wrong is refused before a study is read.
    loaded = load_claims(claim_files(files))

    from bedplate.analysis.claims import judge_claims  # noqa: PLC0415
    from bedplate.analysis.comparison import accepting  # noqa: PLC0415
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.advice_tables import claim_tables, claims_document  # noqa: PLC0415

    found = judge_claims(accepting([overview(path) for path in studies], accepted), loaded)
    if as_json:
        print_json(claims_document(found))
    else:
        print_tables(claim_tables(found))


@click.command()
@STUDY_DIRECTORIES
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=PATH,
    help="the page to write; default: report.html here, or index.html in the folder of the studies",
)
@CELLS
@claims_option("--claims")
def report(
    studies: tuple[Path, ...], *, output: Path | None, cells: tuple[str, ...], files: tuple[Path, ...]
) -> None:
    """Write one HTML page of studies, or of a folder of them.

    The page needs nothing else. Of a folder that holds several studies, at any of four levels, it has their titles, machines and answers,
    and the way to the page of each.
    """
    if len(studies) == 1 and holds_several(studies[0]):
        if cells or files:
            raise click.UsageError(
                "the page of a folder takes neither --cells nor --claims; name its studies"
            )
        write_index(studies[0], output)
        return
    output = output or Path("report.html")
    studies = require_studies(studies)
    from bedplate.page.build import build_report  # noqa: PLC0415

    made = first_made(output)
    build_report(studies, output, cells=cells, claims=claim_files(files))
    give_to_caller(made)
    print(output)


@click.command()
@STUDY_DIRECTORY
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=PATH,
    required=True,
    help="a directory, or a .xlsx, .csv, .parquet or .json file",
)
@CELLS
@click.option(
    "--format",
    "formats",
    metavar="NAME",
    multiple=True,
    help="of a directory: csv, parquet or json; default: all",
)
@click.option(
    "--table",
    "tables",
    metavar="NAME",
    multiple=True,
    help="only this table (docs/EXPORT.md); `plans`, the query plans, are written only so; may be given again",
)
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    type=METRIC_NAME,
    shell_complete=metric_names,
    help="only figures of this metric; may be given again",
)
def export(
    study: Path,
    *,
    output: Path,
    cells: tuple[str, ...],
    formats: tuple[str, ...],
    tables: tuple[str, ...],
    metrics: tuple[str, ...],
) -> None:
    """Write the figures as XLSX, CSV, Parquet or JSON."""
    (study,) = require_studies([study])
    from bedplate.export.tables import export as write  # noqa: PLC0415

    made = first_made(output)
    for path in write(study, output, formats, cells=cells, tables=tables, metrics=metrics):
        print(path)
    give_to_caller(made)


@click.command()
@STUDY_DIRECTORY
@click.option("--markdown", is_flag=True, help="with a table in Markdown; it reads as plain text too")
@CELLS
def summary(study: Path, *, markdown: bool, cells: tuple[str, ...]) -> None:
    """Twelve lines and a table for a mail or a ticket.

    Plain text of 72 columns.
    """
    (study,) = require_studies([study])
    from bedplate.analysis.answer import headline  # noqa: PLC0415
    from bedplate.analysis.comparison import selected_overviews  # noqa: PLC0415
    from bedplate.analysis.mail import mail_text  # noqa: PLC0415

    (found,) = selected_overviews([study], cells)
    print(mail_text(headline(found), markdown=markdown), end="")


def write_index(directory: Path, output: Path | None) -> None:
    """One page over the studies in a folder: title, machine, answer, and the way to the page of each."""
    studies = studies_below(directory)
    from bedplate.page.build import build_index  # noqa: PLC0415

    written = output or directory / "index.html"
    made = first_made(written)
    entries = build_index(directory, studies, written)
    give_to_caller(made)
    for entry in entries:
        for problem in entry.problems:
            print(f"{entry.place}: {problem}", file=sys.stderr)
    print(written)


@click.command("import")
@click.argument("source", type=PATH, help="a folder or file of published results (docs/IMPORT.md)")
@click.option("--study", metavar="DIRECTORY", type=PATH, required=True, help="the study that is made")
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="of which form the source is (docs/IMPORT.md); default: what it looks like",
)
def import_results(source: Path, *, study: Path, form: str | None) -> int:
    """Make a study of results that others published.

    It is shown, exported and judged as any other, and never compared with measured cells.

    Exit code 1 where something of the source was left out; what, and why, is said for each file.
    """
    from bedplate.host.ownership import first_made, give_to_caller  # noqa: PLC0415
    from bedplate.imported.importing import import_source  # noqa: PLC0415

    made = first_made(study)
    found = import_source(source, study, form=form)
    give_to_caller(made)
    told = (*found.problems, *found.failures)
    for each in told:
        print(each, file=sys.stderr)
    print(
        f"{study}: {format_count(len(found.runs), 'run')} of {found.adapter}, {len(found.failures)} without figures, "
        f"{found.doubted} suspect, {format_count(len(found.problems), 'thing')} left out"
    )
    return EXIT_SOME_RUNS_FAILED if told else EXIT_DONE


def inspect(target: Path, *, plan: Path | None, as_json: bool) -> int:
    """Print what a server at a data directory, device or mount point runs on; `plan` is a file for the plan that measures it."""
    from bedplate.campaign.questions import inspect as look  # noqa: PLC0415
    from bedplate.campaign.questions import own_question  # noqa: PLC0415
    from bedplate.host.facts import read_machine  # noqa: PLC0415

    machine = read_machine()
    found = look(target, virtualisation=machine.virtualisation)
    question = own_question(machine, found, compare=True)
    if plan is not None:
        if question is None:
            raise PlanError(f"no plan can measure this: {found.place.type or 'nothing that is mounted'}")
        _write(plan, question.text)
    if as_json:
        from bedplate.cli.printing import print_json  # noqa: PLC0415
        from bedplate.model.codec import to_json  # noqa: PLC0415

        print_json(
            {**to_json(found), "class": found.fitting, "plan": None if question is None else question.text}
        )
        return EXIT_DONE
    say_inspected(found)
    if plan is not None:
        print(f"plan: {plan}")
    elif question is not None:
        print(
            f"\nThe plan that measures it beside its neighbours (-o FILE writes it):\n\n{question.text}",
            end="",
        )
    return EXIT_DONE


def say_inspected(found: Inspected) -> None:
    """A line for each thing that decides, and what is not known."""
    from bedplate.cli.printing import say  # noqa: PLC0415
    from bedplate.model.cell import engine_model  # noqa: PLC0415
    from bedplate.model.levels import as_in_a_plan  # noqa: PLC0415
    from bedplate.model.reason import sentences  # noqa: PLC0415

    directory = found.directory
    what = (
        f"{engine_model(directory.engine).label} {directory.version}".rstrip()
        if directory
        else "no engine's files that are known"
    )
    say(f"{found.path}: {what}")
    for place, standing in found.places.items():
        _say_standing("file system" if place == "data" else place, standing)
    say(f"  cache        {found.cache.kind}: {found.cache.why}")
    if directory is not None and directory.settings:
        words = [
            f"{name} = {value}" if name in directory.said_by else f"{name} = {value} (default)"
            for name, value in directory.settings.items()
            if directory.knows_settings or name in directory.said_by
        ]
        if not directory.knows_settings:
            silent = [name for name in directory.settings if name not in directory.said_by]
            words += [f"{', '.join(silent)} not known"] if silent else []
        say(f"  settings     {', '.join(words)}")
    if directory is not None and directory.made_with:
        say(
            f"  made with    {', '.join(f'{name} = {as_in_a_plan(value)}' for name, value in directory.made_with.items())}"
        )
    if directory is not None and directory.more:
        say(f"  also set     {', '.join(f'{name} = {value}' for name, value in directory.more.items())}")
    said = found.durability
    if found.fitting is not None:
        say(f"  power cut    {found.fitting} (declared)")
    else:
        say(
            f"  power cut    {said.volatile_cache} with a volatile cache, {said.protected_cache} with a protected one (declared)"
        )
    for sentence in sentences(said.reasons):
        say(f"               {sentence}")
    for sentence in (*found.unknown, *(directory.untold if directory else ())):
        say(f"  not known    {sentence}")
    for sentence in directory.left_out if directory else ():
        say(f"  not in plan  {sentence}")


def _say_standing(what: str, standing: MountedPlace) -> None:
    from bedplate.cli.printing import say  # noqa: PLC0415

    blocks = f", blocks of {format_size(standing.block_bytes)}" if standing.block_bytes else ""
    journal = f", journal {standing.journal}" if standing.journal else ""
    say(
        f"  {what:<12} {standing.type or 'not mounted'}{f' on {standing.target}' if standing.target else ''}{blocks}{journal}"
    )
    if standing.shown:
        say(f"  {'options':<12} {','.join(standing.shown)}")
    for layer in standing.layers:
        indent = "  " * layer.depth
        told = [layer.kind, format_size(layer.size_bytes), layer.model]
        if layer.sector_bytes:
            told.append(f"sectors of {layer.sector_bytes} bytes")
        if layer.write_cache:
            told.append(f"write cache {layer.write_cache}")
        if layer.file:
            told.append(f"file {layer.file}")
        say(f"  {'device':<12} {indent}{layer.name}: {', '.join(each for each in told if each)}")


def _write(plan: Path, text: str) -> None:
    made = first_made(plan)
    try:
        with plan.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise PlanError(f"{plan} cannot be written: {error.strerror or error}") from error
    give_to_caller(made)
