"""What records say of MariaDB."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bedplate.model.cell import Cell, EngineModel
from bedplate.model.figure import Better, Metric, Scale, taken_from
from bedplate.model.levels import Levels
from bedplate.units import parse_size

# A commit waits for the log's sync with these (MariaDB manual, "innodb_flush_log_at_trx_commit").
WAITING = ("1", "3")

PAGE_SIZE = "innodb_page_size"
USUAL_PAGE_BYTES = 16384


class MariadbModel(EngineModel):
    """Its page size is chosen when the data directory is made."""

    def block_bytes(self, cell: Cell) -> int | None:
        """As asked, else InnoDB's own."""
        found = super().block_bytes(cell)
        return USUAL_PAGE_BYTES if found is None else found

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:
        """By the setting of the server."""
        name = "innodb_flush_log_at_trx_commit"
        return str(in_force.get(f"setting {name}") or settings.get(name) or "1") in WAITING


MODEL = MariadbModel(
    "MariaDB",
    {
        f"cluster.settings.{PAGE_SIZE}": f"mariadb.{PAGE_SIZE}",
        "cluster.settings.": "mariadb.settings.",
        "cluster.": "mariadb.",
    },
    making="mariadb-install-db",
    block_level=f"cluster.settings.{PAGE_SIZE}",
    before_block="innodb",
    # Measured on two busy processors: 2.5.
    cuts_per_s=2.0,
)

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT = Scale.RATIO, Scale.PROPORTION, Scale.COUNT

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
_INNODB = taken_from(
    "`SHOW GLOBAL STATUS`",
    Metric("buffer_pool_hit_ratio", "share", _PROPORTION, _HIGHER,
        "1 - pages that had to be read / pages asked for", "`Innodb_buffer_pool_reads`, `_read_requests`"),
    Metric("buffer_pool_flushed_mib", "MiB", _RATIO, _NEITHER,
        "pages written from the buffer pool x the page size", "`Innodb_buffer_pool_pages_flushed`"),
    Metric("buffer_pool_lru_flushed_mib", "MiB", _RATIO, _LOWER,
        "of these, pages written because room was needed", "`Innodb_buffer_pool_pages_lru_flushed`"),
    Metric("buffer_pool_waits", "1", _COUNT, _LOWER, "times a session waited for a free page", "`Innodb_buffer_pool_wait_free`"),
    Metric("doublewrite_mib", "MiB", _RATIO, _NEITHER,
        "pages written a second time, to the doublewrite buffer, x the page size", "`Innodb_dblwr_pages_written`"),
    Metric("log_waits", "1", _COUNT, _LOWER, "times the log's buffer was too small", "`Innodb_log_waits`"),
    Metric("data_syncs_per_transaction", "1", _RATIO, _NEITHER, "syncs that InnoDB asked for / transactions", "`Innodb_data_fsyncs`"),
    Metric("row_lock_waits", "1", _COUNT, _LOWER, "times a session waited for a row", "`Innodb_row_lock_waits`"),
    Metric("row_lock_s", "s", _RATIO, _LOWER, "time that sessions waited for rows, added up", "`Innodb_row_lock_time`"),
    Metric("deadlocks", "1", _COUNT, _LOWER, "deadlocks; the client begins such a transaction again", "`Innodb_deadlocks`"),
)

# fmt: on
METRICS: Mapping[str, tuple[Metric, ...]] = {"MariaDB": _INNODB}

_NAME = re.compile(r"[a-z][a-z0-9_]{1,63}")
_WITH_UNIT = re.compile(r"\d+(?:\.\d+)?\s*(?:[kKMGT]i?B?)")
_NETWORK = "the server listens on a private Unix socket only"
_PLACES = "bedplate decides where the server and its files are"
_PROGRAMS = "it would load or run what is not the server's own"
_LOG = "the server's log is read, and bedplate directs it"

# What names a file or a folder, by the end of its name.
_PLACE = re.compile(r"(?:.*_)?(?:dir|dirs|directory|path|file|filename|tmpdir|basename|chroot)")

CONTROLLED: Mapping[str, str] = {
    **dict.fromkeys(
        ("port", "extra_port", "bind_address", "skip_networking", "socket", "skip_grant_tables", "user"),
        _NETWORK,
    ),
    **dict.fromkeys(
        ("basedir", "datadir", "log_bin", "log_bin_index", "relay_log", "secure_file_priv"), _PLACES
    ),
    **dict.fromkeys(
        ("plugin_load", "plugin_load_add", "init_connect", "init_slave", "wsrep_provider", "local_infile"),
        _PROGRAMS,
    ),
    **dict.fromkeys(("log_error", "general_log", "slow_query_log", "lc_messages", "bootstrap"), _LOG),
    "innodb_page_size": "it is chosen when the data directory is made; write innodb_page_size in [mariadb] itself",
    "innodb_force_recovery": "a server that passes over damage would be measured",
    "innodb_read_only": "a workload could not be loaded",
}

_TRUTHS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def setting_name(text: str) -> str:
    """The name as `SHOW VARIABLES` has it; ValueError says why it is refused."""
    name = text.lower().replace("-", "_")
    if _NAME.fullmatch(name) is None:
        raise ValueError("a setting's name has letters, digits and underscores")
    if name in CONTROLLED:
        raise ValueError(f"bedplate sets {name} itself: {CONTROLLED[name]}")
    if _PLACE.fullmatch(name) is not None:
        raise ValueError(f"bedplate sets {name} itself: {_PLACES}")
    return name


def setting_value(value: object) -> str:
    """The value as the server takes it: booleans become ON and OFF, sizes with a unit bytes, numbers their digits."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    if isinstance(value, int) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, float) and abs(value) < float("inf"):
        return f"{value:.15g}"
    if isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable():
        if _WITH_UNIT.fullmatch(value):
            return str(parse_size(value if value[-1] in "Bb" else f"{value}B"))
        return value
    raise ValueError(
        "allowed are true, false, a number, a size with its unit, or a text of at most 200 printable characters"
    )


def same_value(level: str, effective: str) -> bool:
    """Whether an asked text means what the server shows."""
    first, second = truth(level), truth(effective)
    if first is not None and second is not None:
        return first == second
    try:
        return float(level) == float(effective)
    except ValueError:
        # Lists of words are sorted and completed by the server; those are not asked for here.
        return level.strip().lower() == effective.strip().lower()


def truth(text: str) -> bool | None:
    """What a text means where a switch is asked for; None where it means neither. 1 and 0 are switches and numbers."""
    return {**_TRUTHS, "1": True, "0": False}.get(text.strip().lower())
