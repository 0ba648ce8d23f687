"""bedplate measures databases across Linux file systems."""

__version__ = "0.9.0"
