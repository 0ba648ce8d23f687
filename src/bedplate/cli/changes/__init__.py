"""The commands about a change: what it does beside what was before, and which commit of many it was."""
