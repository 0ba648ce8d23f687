"""One self-contained page from studies: it opens offline and asks nothing of a network.

Here: the document that the script reads, what stands on the page before it runs, and the script itself in `assets`.
Not here: what is said, which is `analysis`.
May import: `analysis`, `cuts`, `statistics`, `model`; jinja2, numpy, polars.
Must not import: `terminal`, `export`; rich, xlsxwriter.
"""
