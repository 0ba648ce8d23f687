"""MariaDB's settings in a plan: their names, their values, and those that bedplate itself decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def same_value(asked: str, shown: str) -> bool:
    """Whether an asked text means what the server shows."""
    first, second = truth(asked), truth(shown)
    if first is not None and second is not None:
        return first == second
    try:
        return float(asked) == float(shown)
    except ValueError:
        # Lists of words are sorted and completed by the server; those are not asked for here.
        return asked.strip().lower() == shown.strip().lower()


def truth(text: str) -> bool | None:
    """What a text means where a switch is asked for; None where it means neither. 1 and 0 are switches and numbers."""
    return {**_TRUTHS, "1": True, "0": False}.get(text.strip().lower())
