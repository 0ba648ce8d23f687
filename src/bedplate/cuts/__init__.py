"""Power cuts and failing disks: what a run of them leaves, what it comes to, and whose fault it is.

Here: records, the recorder's log, the choice of cuts, verdicts and their rules, stories, words for them.
Not here: recording, replaying and asking (`workloads`, `visit`); how it looks in a terminal, on the page or in a file.
May import: `model`, `statistics`.
Must not import: any other room.
"""
