"""bedplate measures databases across Linux file systems."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from bedplate.export.tables import StudyTables

__version__ = "0.9.0"


def read_study(study_folder: str | PathLike[str]) -> StudyTables:
    """The tables of a study, as `bedplate export` writes them: `read_study("my-study").runs` is a data frame of polars.

    StudyError, as from the commands, for what is no study or a damaged one.
    """
    # Imported by name and when it is called: a visit imports this package too, and has no libraries.
    require: Callable[[list[Path]], tuple[Path, ...]] = import_module("bedplate.cli.printing").require_studies
    tables: type[StudyTables] = import_module("bedplate.export.tables").StudyTables
    (study,) = require([Path(study_folder)])
    return tables(study)
