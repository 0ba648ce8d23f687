"""XML of somebody else's: no entities, no document type, bounded in depth and size."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import TreeBuilder
from xml.parsers import expat

from bedplate.imported.source import SourceUnreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MOST_LEVELS = 64
_MOST_ELEMENTS = 1_000_000


class _Refused(Exception):
    """What stands in a document that none of ours needs."""


def element_of(data: bytes, source: str) -> Element:
    """The root of a document. SourceUnreadable where it is none, or has a document type: that is where entities are declared."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > _MOST_LEVELS or count > _MOST_ELEMENTS:
            raise _Refused("it has too many elements, or they lie too deep")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def doctype(*_: object) -> None:
        raise _Refused("it has a document type, by which entities grow without end")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
        return builder.close()
    except _Refused as error:
        raise SourceUnreadable(f"{source} is not read: {error}") from error
    except (expat.ExpatError, AssertionError, ValueError, LookupError) as error:
        raise SourceUnreadable(f"{source} is no XML: {error}") from error
