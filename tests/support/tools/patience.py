"""How long a test waits for what has to come."""

from __future__ import annotations

# Longer than anything takes on two processors that twenty others want: only what hangs misses it. What has come is not
# waited for, so that it costs nothing.
AT_MOST_S = 900.0
