"""One visit, from preflight to clean-up.

Here: the order of the steps, what they take and give back, what is found and recorded.
Not here: what is loaded and run (`workloads`), and what is made of the records (`figures`).
May import: `filesystem`, `probe`, `host`, `cuts`, `model`; the standard library.
Must not import: `engines`, `workloads`, `figures`, `plan`, `study`, `executors`; any library.
"""
