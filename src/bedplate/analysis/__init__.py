"""What a study says: its cells, runs and summaries, and what is concluded from them.

Here: overview, labels, factors, filters, health, words that every reader writes alike; comparison, effects, advice, headline, claims.
Not here: how it looks in a terminal, on the page or in a file.
May import: `cuts`, `statistics`, `figures`, `study`, `plan`, `model`; numpy, pydantic.
Must not import: `terminal`, `page`, `export`, `host`, `visit`, `executors`; rich, jinja2, xlsxwriter.
"""
