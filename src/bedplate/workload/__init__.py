"""Workloads: what is loaded and run; one file each."""
