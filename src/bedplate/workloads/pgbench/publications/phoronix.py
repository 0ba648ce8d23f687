"""A `composite.xml` of the Phoronix Test Suite: its results of `pts/pgbench`.

A system is a machine with what was installed on it; its `Software` has the kernel and the file system. The runs behind a
value are in `RawString`. What a description says besides scale, clients and mode is part of the run's name: older profiles have
`Scaling: On-Disk` and `Test: Normal Load`. The profile is a level, as each has its own PostgreSQL. Results of other tests are left out by name: their units are no metrics of bedplate.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from bedplate.imported.published import (
    UNKNOWN,
    PublishedMachine,
    PublishedRun,
    PublishedSource,
    SourceUnreadable,
    element_of,
    moment,
    number,
    published_cell,
    shown,
    whole,
)
from bedplate.model.cell import RunSpec
from bedplate.model.engines import POSTGRESQL
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.workloads.pgbench.publications.documents import DocumentAdapter
from bedplate.workloads.pgbench.publications.report import left_out, run_spec, script_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_TEST = re.compile(r"(?:\w+/)?pgbench(?:-[\d.]+)?")
_METRICS = {"tps": "tps", "ms": "latency_ms_mean"}
_SCALE, _CLIENTS, _MODE = "Scaling Factor", "Clients", "Mode"
# The value of each; what is none stays a word of the description.
_FACTS = {_SCALE: re.compile(r"\d{1,9}"), _CLIENTS: re.compile(r"\d{1,9}"), _MODE: re.compile(r".+")}
_KERNEL, _TYPE, _DISTRIBUTION = "Kernel", "File-System", "OS"
_PROCESSOR, _DISK = "Processor", "Disk"


class _Kind(NamedTuple):
    """What tells the results of a document apart."""

    system: str
    test: str
    description: str


def _document(source: PublishedSource, file: PurePosixPath, problems: list[Reason]) -> Element | None:
    try:
        root = element_of(source.read_bytes(file), shown(file))
    except SourceUnreadable as error:
        problems += reasons_of(error)
        return None
    if root.tag != "PhoronixTestSuite" or root.find("Result") is None or root.find("System") is None:
        problems.append(because("source-strange", f"{shown(file)} has no <System> and <Result> of the suite"))
        return None
    return root


def _runs(
    root: Element, _source: PublishedSource, file: PurePosixPath, problems: list[Reason]
) -> Iterator[PublishedRun]:
    systems = {_text(each, "Identifier"): each for each in root.findall("System")}
    others: Counter[str] = Counter()
    # The suite has a result for the tps and one for the latency of the same runs.
    values: defaultdict[_Kind, dict[str, list[float]]] = defaultdict(dict)
    for result in root.findall("Result"):
        test, scale = _text(result, "Identifier"), _text(result, "Scale").casefold()
        if not _TEST.fullmatch(test) or scale not in _METRICS:
            others[test or UNKNOWN] += 1
            continue
        for entry in result.findall("Data/Entry"):
            description = _text(result, "Description").removesuffix(" - Average Latency")
            kind = _Kind(_text(entry, "Identifier"), test, description)
            if _METRICS[scale] in values[kind]:
                words = f"a further result of {kind.system!r:.80}, {test}, {description!r:.80} is left out"
                problems.append(because("source-result-left-out", f"{shown(file)}: {words}"))
                continue
            values[kind][_METRICS[scale]] = _numbers(entry)
    if others:
        problems.append(left_out(shown(file), others))
    for kind, found in values.items():
        system = systems.get(kind.system)
        if system is None:
            problems.append(
                because(
                    "source-strange",
                    f"{shown(file)}: results of {kind.system!r:.80}, which is no system of it",
                )
            )
            continue
        yield from _of_entry(shown(file), system, kind, found)


def _of_entry(
    file: str, system: Element, kind: _Kind, found: Mapping[str, list[float]]
) -> Iterator[PublishedRun]:
    told, spec = _told(kind.description)
    software, hardware = _named(_text(system, "Software")), _named(_text(system, "Hardware"))
    kernel = software.get(_KERNEL, "").split(" ")[0] or None
    for place in range(max([1, *map(len, found.values())])):
        own = {metric: values[place] for metric, values in found.items() if place < len(values)}
        yield PublishedRun(
            machine=PublishedMachine(
                name=_text(system, "Hardware") or _text(system, "Identifier"),
                cpu_model=hardware.get(_PROCESSOR, UNKNOWN),
                distribution=software.get(_DISTRIBUTION, UNKNOWN),
                kernel_release=kernel or UNKNOWN,
                disk=hardware.get(_DISK),
            ),
            cell=published_cell(
                POSTGRESQL,
                software.get(_TYPE, UNKNOWN),
                kernel=kernel,
                features={"system": kind.system, "test": kind.test},
            ),
            series=file,
            scale=whole(told.get(_SCALE)),
            spec=spec,
            repetition=place + 1,
            file=file,
            text=f"{kind.test}\n{kind.description}\n{own}\n",
            figures=tuple(figure(metric, value) for metric, value in own.items()),
            started_wall_s=moment(_text(system, "TimeStamp")),
            failure=None if own else because("source-strange", f"{file}: an entry without a value"),
            surroundings={"kernel": kernel} if kernel else {},
        )


def _told(description: str) -> tuple[Mapping[str, str], RunSpec]:
    """The facts of a description, and the run: one of other words is another run."""
    told: dict[str, str] = {}
    others = []
    for part in description.split(" - "):
        name, _, value = part.partition(": ")
        if name in _FACTS and name not in told and _FACTS[name].fullmatch(value):
            told[name] = value
        elif part:
            others.append(part)
    spec = run_spec(script_name(told.get(_MODE, UNKNOWN)), clients=whole(told.get(_CLIENTS)))
    if not others:
        return told, spec
    words = " - ".join(others)
    return told, replace(spec, name=f"{spec.name} {words}", levels=spec.levels.updated(description=words))


def _numbers(entry: Element) -> list[float]:
    """The single runs; where the suite kept none of them the one value."""
    raw = [number(part) for part in _text(entry, "RawString").split(":")]
    single = [value for value in raw if value is not None]
    if single and len(single) == len(raw):
        return single
    value = number(_text(entry, "Value"))
    return [] if value is None else [value]


def _named(text: str) -> dict[str, str]:
    """`Processor: Intel …, Memory: 16GB`: names begin after a comma and end with a colon."""
    parts = re.split(r"(?:^|, )([A-Z][A-Za-z -]{1,30}): ", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _text(element: Element, name: str) -> str:
    return shown((element.findtext(name) or "").strip()[:2000])


PHORONIX = DocumentAdapter("phoronix", "Phoronix Test Suite: composite.xml", ".xml", _document, _runs)
