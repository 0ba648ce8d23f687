"""What is read in a terminal, at 80 columns, and the same as one document of plain records.

Here: the tables of `show`, `compare`, `effects`, `advise` and `claims`.
Not here: what is said, which is `analysis`.
May import: `analysis`, `cuts`, `statistics`, `model`; rich.
Must not import: `page`, `export`; jinja2, xlsxwriter.
"""
