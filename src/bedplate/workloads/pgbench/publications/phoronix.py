"""A `composite.xml` of the Phoronix Test Suite: its results of `pts/pgbench`.

A system is a machine with what was installed on it; its `Software` has the kernel and the file system. The runs behind a
value are in `RawString`. Results of other tests are left out by name: their units are no metrics of bedplate.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from bedplate.imported.numbers import moment, number
from bedplate.imported.published import UNKNOWN, PublishedMachine, PublishedRun, published_cell
from bedplate.imported.source import SourceUnreadable, shown
from bedplate.imported.xml_text import element_of
from bedplate.model.engines import POSTGRESQL
from bedplate.model.metrics import figure
from bedplate.model.reason import because, reasons_of
from bedplate.workloads.pgbench.publications.documents import DocumentAdapter
from bedplate.workloads.pgbench.publications.report import run_spec, script_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import PurePosixPath
    from xml.etree.ElementTree import Element

    from bedplate.imported.source import PublishedSource
    from bedplate.model.reason import Reason

_TEST = re.compile(r"(?:\w+/)?pgbench(?:-[\d.]+)?")
_METRICS = {"tps": "tps", "ms": "latency_ms_mean"}
_FACTS = ("Scaling Factor", "Clients", "Mode")
_KERNEL, _TYPE, _DISTRIBUTION = "Kernel", "File-System", "OS"
_PROCESSOR, _DISK = "Processor", "Disk"


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
    values: defaultdict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
    for result in root.findall("Result"):
        test, scale = _text(result, "Identifier"), _text(result, "Scale").casefold()
        if not _TEST.fullmatch(test) or scale not in _METRICS:
            others[test or UNKNOWN] += 1
            continue
        for entry in result.findall("Data/Entry"):
            description = _text(result, "Description").removesuffix(" - Average Latency")
            key = (_text(entry, "Identifier"), description)
            values[key].setdefault(_METRICS[scale], _numbers(entry))
    if others:
        named = ", ".join(f"{test} ({count})" for test, count in others.most_common(8))
        problems.append(
            because("source-result-left-out", f"{shown(file)}: results of other tests are left out: {named}")
        )
    for (identifier, description), found in values.items():
        system = systems.get(identifier)
        if system is None:
            problems.append(
                because(
                    "source-strange",
                    f"{shown(file)}: results of {identifier!r:.80}, which is no system of it",
                )
            )
            continue
        yield from _of_entry(shown(file), system, description, found)


def _of_entry(
    file: str, system: Element, description: str, found: Mapping[str, list[float]]
) -> Iterator[PublishedRun]:
    told = dict(part.split(": ", 1) for part in description.split(" - ") if ": " in part)
    scale, clients, mode = (told.get(name, "") for name in _FACTS)
    software, hardware = _named(_text(system, "Software")), _named(_text(system, "Hardware"))
    kernel = software.get(_KERNEL, "").split(" ")[0] or None
    spec = run_spec(
        script_name("select" if "only" in mode.casefold() else "tpc-b" if mode else UNKNOWN),
        clients=_whole(clients),
    )
    for place in range(max(map(len, found.values()), default=0)):
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
                features={"system": _text(system, "Identifier")},
            ),
            series=file,
            scale=_whole(scale),
            spec=spec,
            repetition=place + 1,
            file=file,
            text=f"{description}\n{own}\n",
            figures=tuple(figure(metric, value) for metric, value in own.items()),
            started_wall_s=moment(_text(system, "TimeStamp")),
            failure=None if own else because("source-strange", f"{file}: an entry without a value"),
            surroundings={"kernel": kernel} if kernel else {},
        )


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


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) else None


PHORONIX = DocumentAdapter("phoronix", "Phoronix Test Suite: composite.xml", ".xml", _document, _runs)
