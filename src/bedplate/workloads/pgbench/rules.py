"""What pgbench's datasets cannot be in a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.workloads.pgbench.own_directory import against_the_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.plan.rules import DatasetRule

RULES: Mapping[str, DatasetRule] = {"data-directory-is-otherwise": against_the_files}
