"""Which form of publication a source is, by name or by what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.near_names import unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.imported.published import Adapter
    from bedplate.imported.source import PublishedSource

# A folder of thousands of files may be of another kind altogether.
_MOST_UNREADABLE = 5


def adapters() -> Mapping[str, Adapter]:
    """The role `publications` of every workload that has it, by the names of the forms."""
    return {each.name: each for own in registry.parts("publications").values() for each in own}


def adapter_for(source: PublishedSource, asked: str | None = None) -> Adapter:
    """The adapter that a source is for.

    PlanError for a form that is not known, where none recognises the source, or several do and none is asked for.
    """
    known = adapters()
    if asked is not None:
        if asked not in known:
            raise PlanError(unknown_name("form of publication", asked, known))
        return known[asked]
    found = [each for each in known.values() if each.recognises(source)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise PlanError(f"{source.name} may be {names}; say which with --format")
    forms = "; ".join(each.words for each in known.values())
    raise PlanError(
        f"{source.name} is none of the forms that are known: {forms}", *source.unreadable[:_MOST_UNREADABLE]
    )
