"""The unprivileged account for servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.host.command import Account


def server_account() -> Account:
    """`bedplate`, else `nobody`; the calling user where that is not root."""
    raise NotImplementedError
