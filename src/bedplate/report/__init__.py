"""Reports: tables, the page, exports; reads studies and nothing else."""
