"""A tree that is configured, compiled and installed as PostgreSQL is, within a second: its server only says its version."""

from __future__ import annotations

from pathlib import Path

from tests.support.sources.histories import commit, repository

from bedplate.engines.postgresql.versions import libraries

SERVER = "src/backend/main.c"
_FOLDERS = (
    *("src/port", "src/common", "src/timezone", "src/interfaces/libpq", "src/fe_utils", "src/pl/plpgsql"),
    *("src/backend/snowball", "src/backend/utils/mb/conversion_procs", "contrib"),
    *(
        f"src/bin/{name}"
        for name in (
            *("initdb", "pg_ctl", "psql", "pgbench", "pg_controldata", "pg_waldump", "pg_checksums"),
            *("pg_config", "pg_test_fsync", "pg_dump"),
        )
    ),
)
_CONFIGURE = f"""#!/bin/sh
set -e
for word; do
  case $word in
  --prefix=*) prefix=${{word#*=}} ;;
  --cache-file=*) : > "${{word#*=}}" ;;
  --with-blocksize=*) block=${{word#*=}} ;;
  --with-wal-blocksize=*) wal=${{word#*=}} ;;
  esac
done
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p src/include src/backend {" ".join(_FOLDERS)}
printf '#define BLCKSZ %s\\n#define XLOG_BLCKSZ %s\\n' $((block * 1024)) $((wal * 1024)) > src/include/pg_config.h
printf '#define %s 1\\n' {" ".join(library.macro for library in libraries(99))} >> src/include/pg_config.h
for folder in {" ".join(_FOLDERS)}; do
  printf 'all install:\\n\\t@true\\n' > $folder/Makefile
done
cat > src/backend/Makefile <<END
all: postgres
generated-headers:
	@true
postgres: $source/{SERVER}
	cc -o postgres $source/{SERVER}
install:
	mkdir -p \\$(DESTDIR)$prefix/bin
	cp postgres \\$(DESTDIR)$prefix/bin/postgres
END
"""


def server(version: str, *, more: str = "") -> str:
    """The server's source."""
    return f"""#include <stdio.h>
int
main(void)
{{
	puts("postgres (PostgreSQL) {version}");
	return 0;
}}
{more}"""


def toy_postgresql(folder: Path, version: str = "19devel") -> Path:
    """A repository with one commit, called `Start`."""
    tree = repository(folder)
    (tree / "configure").write_text(_CONFIGURE, encoding="utf-8")
    (tree / "configure").chmod(0o755)
    files = {
        "configure.ac": f"AC_INIT([PostgreSQL], [{version}], [pgsql-bugs@example.org])\n",
        SERVER: server(version),
    }
    commit(tree, "Start", files)
    return tree
