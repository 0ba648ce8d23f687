"""A spreadsheet as plain records, what its sheets hold, and how it is written as ODS and as XLSX."""
