"""A search as its study has it: what was asked, what was visited, who leads, what comes next or how it ended."""
