"""Git repositories of others: a commit by its name, the files of a commit, patches. Read only; nothing of theirs is executed."""
