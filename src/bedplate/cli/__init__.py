"""The command line: what a person types, and nothing that is measured.

Every command imports what it needs when it is called: a start costs under 0.3 s before it does work.
"""

from __future__ import annotations

import sys

from bedplate.errors import EXIT_INTERRUPTED, BedplateError


def main() -> None:
    """Run the command line and exit with the documented code."""
    # The internal command has only the standard library, so it must not meet typer.
    if sys.argv[1:2] == ["run-visit"]:
        from bedplate.visit.command import main as run_visit  # noqa: PLC0415

        sys.exit(run_visit(sys.argv[2:]))
    from bedplate.cli.app import app  # noqa: PLC0415

    try:
        app()
    except BedplateError as error:
        for reason in error.reasons:
            print(f"error: {reason}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`bedplate show | head`), which is its right.
        sys.stderr.close()
        sys.exit(0)
