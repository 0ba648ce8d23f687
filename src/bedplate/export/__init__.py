"""What is read by other tools: CSV, Parquet, JSON and spreadsheets (docs/EXPORT.md).

Here: rows and their columns, files and workbooks.
Not here: what is said, which is `analysis`.
May import: `analysis`, `statistics`, `figures`, `cuts`, `model`; polars, xlsxwriter.
Must not import: `terminal`, `page`; rich.
"""
