"""What the system lacks is named once, with the command that installs it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from bedplate.campaign import running
from bedplate.campaign.display import LineDisplay
from bedplate.campaign.running import Consent, ensure_requirements
from bedplate.errors import RequirementMissing
from bedplate.host.requirement import Requirement

if TYPE_CHECKING:
    from bedplate.campaign.planning import PlannedStudy

LACKING = (
    Requirement("bison", "bison", "generates parsers", found=False),
    Requirement("zlib headers", "zlib1g-dev", "reads compressed dumps", found=False),
)
SENTENCES = (
    "bison is missing (package bison): generates parsers",
    "zlib headers are missing (package zlib1g-dev): reads compressed dumps",
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Root lacks two packages of a Debian and says no; the questions that were put."""
    monkeypatch.setattr(running, "lacking_of", lambda _: LACKING)
    monkeypatch.setattr("bedplate.campaign.preparation.is_root", lambda: True)
    monkeypatch.setattr("bedplate.host.requirement.read_os_release", lambda: "ID=debian")
    questions: list[str] = []

    def refuse(question: str) -> bool:
        questions.append(question)
        return False

    with pytest.raises(RequirementMissing) as error:
        ensure_requirements(cast("PlannedStudy", SimpleNamespace()), LineDisplay(), Consent(ask=refuse))
    install = "apt-get install --yes --no-install-recommends bison zlib1g-dev"
    assert [*SENTENCES, f"install them: {install}"] == [str(each) for each in error.value.reasons]
    return questions


def test_what_is_missing_is_part_of_the_question(asked: list[str]) -> None:
    (question,) = asked
    assert [*SENTENCES] == question.splitlines()[:-1]
    assert question.endswith(
        "Install them now with `apt-get install --yes --no-install-recommends bison zlib1g-dev`?"
    )


def test_where_nobody_is_asked_only_the_error_names_it(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked
    assert ("", "") == capsys.readouterr()
