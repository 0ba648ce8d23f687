"""Runs that others published, read into studies of `origin = imported`.

Here: what a source may hold and how little of it is trusted, and the study that is made of its runs.
Not here: the forms of publication, each of which is a file in the folder of its workload (role `publications`).
May import: `model`, `study`.
Must not import: what touches a machine (`host`, `visit`), nor what reads figures (`analysis`, `statistics`).
"""
