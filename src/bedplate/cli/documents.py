"""What the program says of itself: examples behind its help, the manual page, the generated parts of docs/."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
from pydantic.fields import FieldInfo

from bedplate import __version__, registry
from bedplate.analysis.claims import CHECKS, Check, Claim, ClaimFile
from bedplate.cli.app import EXIT_CODES, program
from bedplate.cli.commands import every_command, root_context
from bedplate.cli.options import EXAMPLES
from bedplate.cuts.blame import Story
from bedplate.cuts.records import PointRecord, RecordingFacts
from bedplate.executors.qemu.own_kernel import EVERY_GUEST, FILESYSTEMS, RECORDER, SCHEDULERS
from bedplate.export.columns import RUN_COLUMNS, Column, Meaning
from bedplate.export.tables import FIGURE_COLUMNS, NODES, SEARCH_TABLE, workload_exports
from bedplate.model.cell import SourceTree
from bedplate.model.course import COURSE, COURSE_FILE, LATENCY, LATENCY_FILE, CourseColumn
from bedplate.model.figure import Metric, RunFigures
from bedplate.model.levels import Levels
from bedplate.model.limits import FILE_LIMITS, TEXT_LIMIT
from bedplate.model.machine import StoredMachine
from bedplate.model.metrics import METRIC_GROUPS
from bedplate.model.plan import RecordWords, SearchRecord, model_of
from bedplate.model.rules import Rule, RunRules
from bedplate.model.visit import RunRecord, VisitRecord, VisitRequest
from bedplate.plan.fields import FEATURES, varies
from bedplate.plan.load import TABLES
from bedplate.plan.schema import field_texts, key_lines
from bedplate.plan.table import PlanTable
from bedplate.study.records import Checksums, PairedRecord, StudyFacts, StudySchedule
from bedplate.units import format_size

NAME = "bedplate.1"


def manual_page() -> str:
    """The page in roff, as man(7) has it."""
    lines = [
        '.\\" Written by `./check --documents` from the commands; do not edit.',
        f'.TH BEDPLATE 1 "" "bedplate {__version__}" "User Commands"',
        ".SH NAME",
        "bedplate \\- measures databases across Linux file systems",
        ".SH SYNOPSIS",
        ".B bedplate",
        ".I COMMAND",
        ".RI [ OPTIONS ]",
        ".SH DESCRIPTION",
        _text(program.help or ""),
        ".SH COMMANDS",
    ]
    for words, command, context in every_command(program, root_context(program)):
        lines += _manual_section(words, command, context)
    lines += [
        ".SH EXIT STATUS",
        *(line for code, words in EXIT_CODES for line in (".TP", f".B {code}", _text(words))),
    ]
    return "\n".join(lines) + "\n"


def _manual_section(words: str, command: click.Command, context: click.Context) -> list[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS {_text(f'{words} {usage}')}", *_paragraphs(command.help or "")]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            lines += [".TP", f".B {_text(record[0])}", _text(record[1])]
    if words in EXAMPLES:
        lines += [".PP", "Examples:", ".PP", ".nf", ".RS", *map(_text, EXAMPLES[words]), ".RE", ".fi"]
    return lines


def _paragraphs(help_text: str) -> Iterator[str]:
    for paragraph in help_text.split("\n\n"):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _text(words: str) -> str:
    """Text that roff shows as it is."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("’", "'")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


# The files of a study that are one record, or one a line; the records within them are found by their fields.
_DOCUMENTS = (
    StudyFacts,
    StudySchedule,
    SearchRecord,
    PairedRecord,
    StoredMachine,
    Checksums,
    VisitRequest,
    VisitRecord,
    RunRecord,
    RecordingFacts,
    PointRecord,
    Story,
    RunFigures,
    *(record for own in registry.parts("records").values() for record in own),
)

_TABLES: Mapping[str, tuple[Column[Any], ...]] = {
    "runs": RUN_COLUMNS,
    "figures": FIGURE_COLUMNS,
    **{name: table.columns for each in workload_exports() for name, table in each.tables.items()},
    "search": SEARCH_TABLE.columns,
    "nodes": NODES.columns,
}

# By their headings on docs/CLAIMS.md; those of a kind without the keys that every check has.
_CLAIMS: Mapping[str, tuple[type[PlanTable], type[PlanTable] | None]] = {
    "a file of claims": (ClaimFile, None),
    "[[claim]]": (Claim, None),
    "every [[claim.check]]": (Check, None),
    **{f"{kind} checks": (table, Check) for kind, table in CHECKS.items()},
}

_NUMBERS = {int: "whole number", float: "number"}

_WORDS = {bool: "true or false", Levels: "object of single values"}

MARKER = re.compile(r"^<!-- generated( to the end)?: (.+) -->$", re.MULTILINE)


def parts() -> Mapping[str, str]:
    """Every generated part by the name in its marker."""
    return {
        "commands": _commands(),
        "validity rules": _rules(),
        **{f"metrics of {group}": _metrics(metrics) for group, metrics in METRIC_GROUPS.items()},
        **{f"fields of {record.__name__}": _fields(record) for record in _records(_DOCUMENTS)},
        "workloads in records": _workloads(),
        f"columns of {COURSE_FILE}": _course(COURSE),
        f"columns of {LATENCY_FILE}": _course(LATENCY),
        **{f"columns of {name}": _exported(name, columns) for name, columns in _TABLES.items()},
        "limits of files": _limits(),
        "options of a guest's kernel": _kernel_options(),
        **{f"keys of {_heading(place)}": _keys(table) for place, table in TABLES.items()},
        **{f"keys of {name}": _claim_keys(table, less) for name, (table, less) in _CLAIMS.items()},
    }


def renewed(page: str, known: Mapping[str, str]) -> str:
    """The page with its generated parts as they should be; KeyError for a marker whose name is not known."""
    done = ""
    while found := MARKER.search(page):
        end = None if found[1] else page.find("\n\n", found.end())
        done += f"{page[: found.end()]}\n{known[found[2]]}"
        page = "\n" if end in (None, -1) else page[end:]
    return done + page


def write(folder: Path) -> None:
    """Renew every page of a folder of documents, and the manual page."""
    known = parts()
    for page in sorted(folder.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (now := renewed(text, known)) != text:
            page.write_text(now, encoding="utf-8")
            print(f"{page} was written anew")
    manual = folder / NAME
    if not manual.exists() or manual.read_text(encoding="utf-8") != manual_page():
        manual.write_text(manual_page(), encoding="utf-8")
        print(f"{manual} was written anew")


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _limits() -> str:
    files = {
        **{_file_words(name): limit for name, limit in FILE_LIMITS.items()},
        "any other text": TEXT_LIMIT,
    }
    return _table(
        ("file", "at most", "what real ones have"),
        ((name, format_size(limit.most_bytes), limit.real) for name, limit in files.items()),
    )


def _file_words(name: str) -> str:
    return f"any other `*{name}`" if name.startswith(".") else f"`{name}`"


def _kernel_options() -> str:
    """Options with what they are for: first what every guest needs, in the order of the check."""
    rows = [
        (f"`{option.words}`", option.purpose, "yes" if option.as_module else "no")
        for option in (
            *EVERY_GUEST,
            *RECORDER,
            *dict.fromkeys(FILESYSTEMS.values()),
            *SCHEDULERS.values(),
        )
    ]
    return _table(("option", "what for", "may be a module, if the modules are there"), rows)


def _commands() -> str:
    """Every command that is not internal, in the order of the help."""
    above = program.make_context("bedplate", [], resilient_parsing=True, terminal_width=80)
    sections = (
        f"## {words}\n\n```\n{command.get_help(context).strip()}\n```"
        for words, command, context in every_command(program, above)
    )
    return "\n" + "\n\n".join(sections)


def _metrics(metrics: Iterable[Metric]) -> str:
    rows = ((f"`{each.name}`", each.unit, each.definition, each.source) for each in metrics)
    return _table(("metric", "unit", "definition", "source"), rows)


def rules_of_runs() -> tuple[RunRules[Any], ...]:
    """Those of each workload, in the order of the registry."""
    return tuple(registry.parts("validity").values())


def _rules() -> str:
    """Each rule once, where the first workload has it."""
    rules = {rule.name: rule for of_one in rules_of_runs() for rule in of_one.rules}.values()
    rows = ((each.name, _judged(each), each.threshold, each.verdict.value, each.source) for each in rules)
    return _table(("rule", "of", "when it speaks", "then", "why"), rows)


def _judged(rule: Rule[Any]) -> str:
    known = rules_of_runs()
    found = [each.of for each in known if rule in each.rules]
    timed = sum(model_of(name).has_speed for name in registry.WORKLOADS)
    by_count = {len(known): "every run", timed: "every timed run"}
    return by_count.get(len(found), ", ".join(found))


def _course(columns: Mapping[str, CourseColumn]) -> str:
    rows = ((f"`{name}`", column.kind, column.meaning) for name, column in columns.items())
    return _table(("column", "type", "meaning"), rows)


def _exported(table: str, columns: Sequence[Column[Any]]) -> str:
    """One row for the columns that share a meaning; in other tables without those that stand in `runs` alike."""
    of_runs = {(column.name, column.meaning) for column in RUN_COLUMNS} if table != "runs" else set()
    rows: list[tuple[list[str], str]] = []
    for column in columns:
        if column.meaning and (column.name, column.meaning) in of_runs:
            continue
        if column.meaning:
            rows.append(([], _meaning(column.meaning)))
        rows[-1][0].append(f"`{column.name}`")
    return _table(("column", "meaning"), ((", ".join(names), meaning) for names, meaning in rows))


def _meaning(meaning: Meaning) -> str:
    """That of a column, which may be the text below a field, or that of a property."""
    if isinstance(meaning, str):
        return meaning
    record, name = meaning
    return field_texts(record).get(name) or getattr(record, name).__doc__.removesuffix(".")


def _heading(place: tuple[str, ...]) -> str:
    """That of a table of a plan, by where it is: of a `[[workload]]` the type comes after its name."""
    if not place:
        return "the plan"
    if place[0] == "workload":
        return f"[[{'.'.join((place[0], *place[2:]))}]] of type {place[1]}"
    return f"[[{place[0]}]]" if place[0] == "filesystem" else f"[{place[0]}]"


def _keys(table: type[PlanTable]) -> str:
    """A row for each key; a type's own factors come last."""
    lines = key_lines(table)
    fields_in_order = sorted(table.model_fields.items(), key=lambda item: item[0] in FEATURES)
    rows = (
        (f"`{field.alias or name}`", line.layer, _varies(field), line.values, line.default, line.example)
        for name, field in fields_in_order
        for line in (lines[name],)
    )
    return _table(("key", "layer", "varies", "values", "default", "example"), rows)


def _varies(field: FieldInfo) -> str:
    if varies(field.metadata):
        return "yes"
    held = [*get_args(field.annotation), field.annotation]
    if SourceTree in held:
        return "its `commit`"
    if any(varies(getattr(each, "__metadata__", ())) for each in held):
        return "each"
    return "–" if any(isinstance(each, type) and issubclass(each, PlanTable) for each in held) else "no"


def _claim_keys(table: type[PlanTable], less: type[PlanTable] | None) -> str:
    """What each key of a table of claims takes, without those that another table lists."""
    rows = (
        (f"`{name}`", f"{field.description or 'one of those below'}{_left_out(field)}")
        for name, field in table.model_fields.items()
        if less is None or name not in less.model_fields
    )
    return _table(("key", "values"), rows)


def _left_out(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    return f"; `{field.default}` if left out" if field.default else "; may be left out"


def _workloads() -> str:
    """A row for each type and for each kind of record in which it writes something of its own."""
    known = {name: model_of(name).words for name in registry.WORKLOADS}
    meanings = field_texts(RecordWords)
    rows = (
        (f"`{name}`", meanings[each.name], words)
        for name, told in known.items()
        for each in fields(RecordWords)
        if (words := getattr(told, each.name))
    )
    return _table(("workload", "of", "what it records"), rows)


def _records(found: Iterable[Any]) -> list[type[Any]]:
    """The records, and those that their fields hold, each once."""
    known: dict[type[Any], None] = {}
    waiting = list(found)
    while waiting:
        kind = waiting.pop(0)
        if isinstance(kind, type) and is_dataclass(kind):
            if kind not in known:
                known[kind] = None
                waiting += get_type_hints(kind).values()
        else:
            waiting += get_args(kind)
    return list(known)


def _fields(record: type[Any]) -> str:
    kinds = get_type_hints(record)
    meanings = field_texts(record)
    rows = (
        (f"`{each.name}`", _kind(kinds[each.name]), meanings.get(each.name) or _members(kinds[each.name]))
        for each in fields(record)
    )
    return _table(("field", "type", "meaning"), rows)


def _members(kind: Any) -> str:
    """The values of an enumeration, which may need no more words; nothing for another type."""
    return ", ".join(f"`{member.value}`" for member in kind) if issubclass(kind, Enum) else ""


def _kind(kind: Any, *, many: bool = False) -> str:
    """A type in words, `many` where a list or an object has several."""
    origin, inner = get_origin(kind), get_args(kind)
    plural = "s" if many else ""
    if origin in (Union, UnionType):
        held = [each for each in inner if each is not NoneType]
        words = _kind(held[0], many=many) if len(held) == 1 else f"single value{plural}"
        return f"{words}, or null" if NoneType in inner else words
    if origin is tuple:
        return f"list{plural} of {_kind(inner[0], many=True)}"
    if origin is not None:
        return f"object{plural} of {_kind(inner[1], many=True)}"
    if kind in _NUMBERS:
        return f"{_NUMBERS[kind]}{plural}"
    if issubclass(kind, str | Enum):
        return "text"
    return _WORDS.get(kind) or str(kind.__name__)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
