"""Figures from the counters before and after the measured window, and from its samples' gauges.

A counter that the machine or the engine does not have makes its figure absent, with that reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from bedplate import registry
from bedplate.model.figure import Figure
from bedplate.model.levels import Scalar
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Sample
from bedplate.units import GIB, KERNEL_SECTOR_BYTES, KIB, MIB

_WRITERS = ("checkpointer", "background_writer", "backend", "allocated")

_PRESSURE = {
    "pressure_cpu_some_share": "pressure.cpu.some.total_us",
    "pressure_io_some_share": "pressure.io.some.total_us",
    "pressure_io_full_share": "pressure.io.full.total_us",
    "pressure_memory_some_share": "pressure.memory.some.total_us",
}

_BUSY = ("cpu.user_s", "cpu.system_s", "cpu.irq_s")
_PROCESSORS = (*_BUSY, "cpu.idle_s", "cpu.iowait_s", "cpu.steal_s")
_CACHES = frozenset({"shared_buffers_hit_ratio", "page_cache_hit_ratio"})

_MACHINE = frozenset(
    {
        "device_busy_share",
        "device_queue_depth_mean",
        "journal_device_busy_share",
        "watching_cpu_share",
        "machine_cpu_share",
        "others_cpu_share",
        "steal_share",
        *_PRESSURE,
    }
)

_NO_TIME = because("no-time-passed", "no time passed")
_NO_TIME_BETWEEN = because("no-time-passed", "no time passed between the two readings")
_NO_BLOCK_SIZE = because("block-size-unknown", "the engine's block size is not in the record")
_NO_BLOCK_ASKED = because("nothing-asked", "the server asked for no block")
_NOTHING_READ = because("nothing-read", "the server read nothing from the file system")
_OWN_CPU_UNKNOWN = because("own-cpu-unknown", "the CPU time of the run's own processes was not counted")
_SLEEPS_UNKNOWN = because("sleeps-unknown", "how often the client's threads slept was not counted")
_TRANSACTIONS_UNKNOWN = because("transactions-unknown", "the number of transactions is not known")
_NO_TRANSACTION = because("no-transaction", "no transaction was processed")
_NO_GAUGE = because("no-sample", "no sample of the measured window has dirty and writeback memory")


class Absent(Exception):
    """Why a figure cannot be: its counter is missing, or there is nothing to divide by."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


@dataclass(frozen=True)
class Deltas:
    """Growth of the counters over the measured window; `seconds` lie between the two readings."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    seconds: float

    @classmethod
    def between(cls, before: Sample, after: Sample) -> Deltas:
        """From the two readings that frame the window."""
        return cls(before.values, after.values, after.monotonic_s - before.monotonic_s)

    def growth(self, name: str) -> float:
        """How much a counter grew; Absent where it is unknown or ran backwards."""
        if name not in self.before or name not in self.after:
            raise _absent(
                "counter-missing", f"the counter {name} is not there on this machine or engine", counter=name
            )
        grown = self.after[name] - self.before[name]
        if grown < 0:
            raise _absent(
                "counter-ran-backwards",
                f"the counter {name} ran backwards: its owner was started anew",
                counter=name,
            )
        return grown

    def growths(self, *names: str) -> float:
        """The sum of several."""
        return sum(self.growth(name) for name in names)

    def over_devices(self, name: str) -> float:
        """A device counter, with that of the journal's own device where there is one."""
        there_is_one = any(key.startswith("journal_device.") for key in self.after)
        return self.growth(f"device.{name}") + (
            self.growth(f"journal_device.{name}") if there_is_one else 0.0
        )


@dataclass(frozen=True)
class Divisors:
    """What counters are divided by: transactions of the log, the clients' CPU, threads and how often these slept."""

    transactions: int | None
    duration_s: float
    client_cpu_s: float | None
    client_threads: int
    block_size_bytes: int | None
    client_sleeps: float | None = None


def counter_figures(
    deltas: Deltas, divisors: Divisors, counters: ServerCounters | None = None
) -> Iterator[Figure]:
    """Every figure of devices, caches, buffers, WAL, processors and pressure, absent ones included.

    `counters` makes those of an engine with counters of its own, in place of PostgreSQL's.
    """
    if counters is None:
        yield from _figures_of(_formulas(deltas, divisors))
        return
    yield from _figures_of(_device_formulas(deltas, divisors))
    yield from _figures_of(_journal_formulas(deltas, divisors))
    yield from _figures_of(counters.formulas(deltas, divisors))
    yield from _figures_of(_processor_formulas(deltas, divisors))


def machine_figures(deltas: Deltas, block_size_bytes: int | None, *, pass_: int) -> Iterator[Figure]:
    """Those of them that are shares of time or ratios: all that a run without transactions has."""
    yield from _figures_of_metrics(deltas, _CACHES | _MACHINE, block_size_bytes, pass_=pass_)


def machine_figures_without_server(deltas: Deltas, *, pass_: int = 1) -> Iterator[Figure]:
    """The same without the ratios that a server's counters give."""
    yield from _figures_of_metrics(deltas, _MACHINE, None, pass_=pass_)


def part_figures(
    deltas: Deltas, *, phase: str = "measure", item: str = "", pass_: int = 1
) -> Iterator[Figure]:
    """What was read, written, flushed and computed within one part of a run, or within all of it."""
    formulas = {
        **_tool_formulas(deltas),
        "temporary_mib": lambda: deltas.growth("postgresql.temp_bytes") / MIB,
    }
    yield from _figures_of(formulas, phase=phase, item=item, pass_=pass_)


def part_figures_without_server(
    deltas: Deltas, *, phase: str = "measure", item: str = "", pass_: int = 1
) -> Iterator[Figure]:
    """The same of a tool that does its I/O itself."""
    yield from _figures_of(_tool_formulas(deltas), phase=phase, item=item, pass_=pass_)


def gauge_figures(samples: tuple[Mapping[str, float], ...], *, pass_: int = 1) -> Iterator[Figure]:
    """Mean and maximum of dirty memory over the samples of the measured window."""
    sums = [
        (values["memory.dirty_bytes"] + values["memory.writeback_bytes"]) / MIB
        for values in samples
        if "memory.dirty_bytes" in values and "memory.writeback_bytes" in values
    ]
    mean = sum(sums) / len(sums) if sums else None
    yield figure("dirty_mib_mean", mean, pass_=pass_, reason=_NO_GAUGE)
    yield figure("dirty_mib_max", max(sums) if sums else None, pass_=pass_, reason=_NO_GAUGE)


def shared_buffers_hit_ratio(deltas: Deltas) -> float:
    """blks_hit / (blks_hit + blks_read) of pg_stat_database."""
    hit, read = deltas.growth("postgresql.blks_hit"), deltas.growth("postgresql.blks_read")
    return divide(hit, hit + read, _NO_BLOCK_ASKED)


def page_cache_hit_ratio(deltas: Deltas, block_size_bytes: int | None) -> float:
    """1 - bytes read from the data device / bytes of relations that PostgreSQL read.

    Since 16 pg_stat_io counts those bytes; before, blks_read of pg_stat_database times the block size.
    Absent where the device read more than that: read-ahead and metadata then hide what the cache held.
    """
    if "postgresql.read_bytes" in deltas.after:
        asked = deltas.growth("postgresql.read_bytes")
    elif block_size_bytes is None:
        raise Absent(_NO_BLOCK_SIZE)
    else:
        asked = deltas.growth("postgresql.blks_read") * block_size_bytes
    from_device = deltas.growth("device.read_sectors") * KERNEL_SECTOR_BYTES
    missed = divide(from_device, asked, _NOTHING_READ)
    if missed > 1:
        raise _absent(
            "read-ahead-hides-the-cache",
            f"the device read {from_device / MIB:.1f} MiB for {asked / MIB:.1f} MiB that the server asked for: "
            "read-ahead and metadata hide what the page cache held",
            device_bytes=from_device,
            asked_bytes=asked,
        )
    return 1 - missed


def steal_share(deltas: Deltas) -> float:
    """Time that a hypervisor took / time of all processors."""
    return divide(deltas.growth("cpu.steal_s"), deltas.growths(*_PROCESSORS), _NO_TIME)


def others_cpu_share(deltas: Deltas) -> float:
    """The least that programs beside the run used of all processors' time.

    Their user time alone: what the kernel does for the file system runs in threads of its own, and is part of
    what is measured. All CPU time of the run's processes is taken off it, their share of the kernel too, so
    that the truth is never less. Absent where the run's own processes were not counted.
    """
    own = sum(
        deltas.growth(name)
        for name in ("server.cpu_s", "client.cpu_s", "watching.cpu_s")
        if name in deltas.after
    )
    if "server.cpu_s" not in deltas.after:
        raise Absent(_OWN_CPU_UNKNOWN)
    others_s = max(0.0, deltas.growth("cpu.user_s") - own)
    return divide(others_s, deltas.growths(*_PROCESSORS), _NO_TIME)


def idle_cpu_share(deltas: Deltas) -> float:
    """Time in which processors had nothing to do / time of all processors."""
    return divide(deltas.growths("cpu.idle_s", "cpu.iowait_s"), deltas.growths(*_PROCESSORS), _NO_TIME)


def busy_cpu_s(deltas: Deltas) -> float:
    """Seconds in which processors were busy, whoever with: added up over all of them."""
    return deltas.growths(*_BUSY)


def _figures_of(
    formulas: Mapping[str, Callable[[], float]], *, phase: str = "measure", item: str = "", pass_: int = 1
) -> Iterator[Figure]:
    for metric, formula in formulas.items():
        value, reason = None, None
        try:
            value = formula()
        except Absent as error:
            reason = error.reason
        yield figure(metric, value, phase=phase, item=item, pass_=pass_, reason=reason)


def _figures_of_metrics(
    deltas: Deltas, metrics: frozenset[str], block_size_bytes: int | None, *, pass_: int
) -> Iterator[Figure]:
    formulas = _formulas(deltas, Divisors(None, 0.0, None, 1, block_size_bytes))
    yield from _figures_of(
        {metric: formulas[metric] for metric in formulas if metric in metrics}, pass_=pass_
    )


def _tool_formulas(deltas: Deltas) -> dict[str, Callable[[], float]]:
    def in_mib(sectors: float) -> float:
        return sectors * KERNEL_SECTOR_BYTES / MIB

    return {
        "device_read_mib": lambda: in_mib(deltas.growth("device.read_sectors")),
        "device_written_mib": lambda: in_mib(deltas.over_devices("written_sectors")),
        "device_flushes": lambda: deltas.over_devices("flushes"),
        "server_cpu_s": lambda: deltas.growth("server.cpu_s"),
    }


def _formulas(deltas: Deltas, divisors: Divisors) -> dict[str, Callable[[], float]]:
    return {
        "shared_buffers_hit_ratio": lambda: shared_buffers_hit_ratio(deltas),
        "page_cache_hit_ratio": lambda: page_cache_hit_ratio(deltas, divisors.block_size_bytes),
        **_device_formulas(deltas, divisors),
        **_journal_formulas(deltas, divisors),
        **_server_formulas(deltas, divisors),
        **_processor_formulas(deltas, divisors),
    }


def _device_formulas(deltas: Deltas, divisors: Divisors) -> dict[str, Callable[[], float]]:
    def per_unit(count: float) -> float:
        return per_transaction(count, divisors)

    return {
        "device_reads_per_transaction": lambda: per_unit(deltas.growth("device.reads")),
        "device_writes_per_transaction": lambda: per_unit(deltas.over_devices("writes")),
        "device_flushes_per_transaction": lambda: per_unit(deltas.over_devices("flushes")),
        "device_read_kib_per_transaction": lambda: per_unit(_kib(deltas.growth("device.read_sectors"))),
        "device_written_kib_per_transaction": lambda: per_unit(_kib(deltas.over_devices("written_sectors"))),
        "device_busy_share": lambda: _busy_share(deltas, "device"),
        "device_queue_depth_mean": lambda: _per_second(
            deltas.growth("device.time_in_queue_ms") / 1000, deltas
        ),
    }


def _journal_formulas(deltas: Deltas, divisors: Divisors) -> dict[str, Callable[[], float]]:
    """The journal device's part; nothing at all where there is no such device."""
    device = "journal_device"
    if f"{device}.writes" not in deltas.after:
        return {}

    def per_unit(count: float) -> float:
        return per_transaction(count, divisors)

    return {
        "journal_device_writes_per_transaction": lambda: per_unit(deltas.growth(f"{device}.writes")),
        "journal_device_flushes_per_transaction": lambda: per_unit(deltas.growth(f"{device}.flushes")),
        "journal_device_written_kib_per_transaction": lambda: per_unit(
            _kib(deltas.growth(f"{device}.written_sectors"))
        ),
        "journal_device_busy_share": lambda: _busy_share(deltas, device),
    }


def _kib(sectors: float) -> float:
    return sectors * KERNEL_SECTOR_BYTES / KIB


def _busy_share(deltas: Deltas, device: str) -> float:
    # The kernel counts in ticks, so that a fully busy device may come out a hair above 1.
    return min(1.0, _per_second(deltas.growth(f"{device}.io_ticks_ms") / 1000, deltas))


def _server_formulas(deltas: Deltas, divisors: Divisors) -> dict[str, Callable[[], float]]:
    def in_mib(blocks: float) -> float:
        if divisors.block_size_bytes is None:
            raise Absent(_NO_BLOCK_SIZE)
        return blocks * divisors.block_size_bytes / MIB

    found: dict[str, Callable[[], float]] = {}
    for writer in _WRITERS:
        name = f"postgresql.buffers_{writer}"
        found[f"buffers_{writer}"] = partial(deltas.growth, name)
        found[f"buffers_{writer}_mib"] = lambda name=name: in_mib(deltas.growth(name))  # type: ignore[misc]
    return {
        **found,
        "maxwritten_clean": lambda: deltas.growth("postgresql.maxwritten_clean"),
        "wal_kib_per_transaction": lambda: per_transaction(
            deltas.growth("postgresql.wal_bytes") / KIB, divisors
        ),
        "wal_full_page_images": lambda: deltas.growth("postgresql.wal_full_page_images"),
    }


def _processor_formulas(deltas: Deltas, divisors: Divisors) -> dict[str, Callable[[], float]]:
    def client_share() -> float:
        # The client's own resource usage covers exactly its life; the probe sees it once a second.
        cpu_s = divisors.client_cpu_s if divisors.client_cpu_s is not None else deltas.growth("client.cpu_s")
        return divide(cpu_s, divisors.duration_s * divisors.client_threads, _NO_TIME)

    def sleeps() -> float:
        if divisors.client_sleeps is None:
            raise Absent(_SLEEPS_UNKNOWN)
        return per_transaction(divisors.client_sleeps, divisors)

    def busy_share() -> float:
        return divide(busy_cpu_s(deltas), deltas.growths(*_PROCESSORS), _NO_TIME)

    return {
        "server_cpu_ms_per_transaction": lambda: per_transaction(
            deltas.growth("server.cpu_s") * 1000, divisors
        ),
        "client_cpu_share": client_share,
        "client_sleeps_per_transaction": sleeps,
        "context_switches_per_transaction": lambda: per_transaction(
            deltas.growth("cpu.context_switches"), divisors
        ),
        "watching_cpu_share": lambda: _per_second(deltas.growth("watching.cpu_s"), deltas),
        "machine_cpu_share": busy_share,
        "others_cpu_share": lambda: others_cpu_share(deltas),
        "steal_share": lambda: steal_share(deltas),
        **{metric: partial(_pressure_share, deltas, name) for metric, name in _PRESSURE.items()},
    }


def _pressure_share(deltas: Deltas, name: str) -> float:
    return min(1.0, _per_second(deltas.growth(name) / 1e6, deltas))


def per_transaction(count: float, divisors: Divisors) -> float:
    """A count / transactions; Absent where there is none to divide by."""
    if divisors.transactions is None:
        raise Absent(_TRANSACTIONS_UNKNOWN)
    return divide(count, divisors.transactions, _NO_TRANSACTION)


def _per_second(count: float, deltas: Deltas) -> float:
    return divide(count, deltas.seconds, _NO_TIME_BETWEEN)


def _absent(code: str, sentence: str, **values: Scalar) -> Absent:
    return Absent(because(code, sentence, **values))


def divide(part: float, total: float, nothing: Reason) -> float:
    """A share; Absent for the reason `nothing` where there is nothing to divide by."""
    if total <= 0:
        raise Absent(nothing)
    return part / total


def cpu_s_per_gib(cpu_s: float, size_bytes: float) -> float | None:
    """CPU seconds per GiB moved; None where nothing was moved, which has no price.

    ValueError for a negative or endless argument: that is a mistake of the caller, not a figure.
    """
    for name, value in (("cpu_s", cpu_s), ("size_bytes", size_bytes)):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a number of zero or more, not {value!r}")
    if size_bytes == 0:
        return None
    return cpu_s / (size_bytes / GIB)


@dataclass(frozen=True)
class FuzzyLog:
    """How far a server without checkpoints of its own was from a steady state over a window; None is not known.

    `turned_over` is how often the whole log was written. `ages` are the checkpoint ages of its samples, what a recovery would
    read then, and `age_limit` is what the server lets them come to; all in bytes.
    """

    turned_over: float | None
    ages: tuple[float, ...] = ()
    age_limit: float | None = None


class ServerCounters(Protocol):
    """The role itself. An engine with a server and without it has PostgreSQL's counters."""

    def formulas(self, deltas: Deltas, divisors: Divisors) -> Mapping[str, Callable[[], float]]:
        """Each metric of the server and how it is made; Absent where a counter is missing."""

    def fuzzy(self, deltas: Deltas | None, samples: Sequence[Mapping[str, float]]) -> FuzzyLog:
        """From the counters at both ends of the window, and its samples."""


class _NoServer:
    """Nothing is counted, and nobody makes checkpoints."""

    def formulas(self, deltas: Deltas, divisors: Divisors) -> Mapping[str, Callable[[], float]]:  # noqa: ARG002 -- none
        return {}

    def fuzzy(self, deltas: Deltas | None, samples: Sequence[Mapping[str, float]]) -> FuzzyLog:  # noqa: ARG002 -- none
        return FuzzyLog(None)


def server_counters_of(engine: str) -> ServerCounters | None:
    """That of an engine; None where its server has none of its own."""
    if engine not in registry.engines_with("server"):
        return _NoServer()
    found: ServerCounters | None = registry.engine_part_or_none(engine, "counter_figures")
    return found
