"""A file of claims with one sentence of XFS beside ext4 with barriers, for studies in which a rule of the test says what is true."""

from __future__ import annotations


def xfs_claim(bound: str, *, run: str = "read-write") -> str:
    """`bound` is the check's own line: `at_least = 1.1`."""
    return f"""
title = "Mine"
[[claim]]
id = "xfs"
sentence = "XFS is as said."
[[claim.check]]
kind = "ratio"
run = "{run}"
metric = "tps"
baseline = "type=ext4 barrier=yes"
contender = "type=xfs"
{bound}
"""
