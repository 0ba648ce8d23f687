"""What the filler columns of pgbench's tables hold: its own blanks, or text that no file system can compress away.

Blanks are 84 of the 97 or so bytes of a row, so that a file system or a disk that compresses writes a fraction of what the database does. Random
filler is base64 of SHA-512, 6 bits in each byte: lz4 gains nothing, an entropy coder (zstd) a quarter at most.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from bedplate.errors import VisitFailed

if TYPE_CHECKING:
    from bedplate.engines.postgresql.session import Session

BLANK, RANDOM = FILLERS = ("blank", "random")
FILLER = "filler"
# As pgbench has them (initPopulateTable, src/bin/pgbench/pgbench.c).
_ROWS = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
_COLUMNS = {
    "pgbench_branches": "(bid, bbalance, filler) SELECT row, 0, {filler}",
    "pgbench_tellers": "(tid, bid, tbalance, filler) SELECT row, (row - 1) / 10 + 1, 0, {filler}",
    "pgbench_accounts": "(aid, bid, abalance, filler) SELECT row, (row - 1) / 100000 + 1, 0, {filler}",
}
# 64 bytes are 86 letters, the width of the columns is 84 and 88; encode() breaks lines.
_FILLER = "left(replace(encode(sha512(convert_to('{seed} ' || row, 'UTF8')), 'base64'), E'\\n', ''), 84)"
_SAMPLE = "SELECT string_agg(filler, '') FROM (SELECT filler FROM pgbench_accounts ORDER BY aid LIMIT 2000) AS sample"
# Of blanks it is a hundredth; of random letters three quarters.
_SHARE_MIN = 0.6


def load_random(session: Session, scale: int, seed: int) -> None:
    """Fill the tables that pgbench has made (steps `dt`); with its own rows, numbers and all."""
    for table, rows in _ROWS.items():
        filler = _FILLER.format(seed=seed)
        words = _COLUMNS[table].format(filler=filler)
        session.execute(f"INSERT INTO {table} {words} FROM generate_series(1, {rows * scale}) AS row")


def demand_random(session: Session) -> float:
    """The share of its size that zlib leaves of the filler; VisitFailed where it is compressible after all."""
    found = session.value(_SAMPLE).encode()
    share = len(zlib.compress(found)) / len(found) if found else 0.0
    if share < _SHARE_MIN:
        raise VisitFailed(
            "load", f'filler = "{RANDOM}": zlib leaves {share:.0%} of what the rows hold, so it is not random'
        )
    return share
