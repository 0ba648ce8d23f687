"""What a visit makes of its devices: an emulated one, and what is read of them beside its runs."""
