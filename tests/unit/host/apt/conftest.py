from __future__ import annotations

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands


@pytest.fixture
def scripted() -> ScriptedCommands:
    return ScriptedCommands()
