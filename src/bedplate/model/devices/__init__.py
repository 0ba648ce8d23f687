"""Devices that are emulated: what they take, as words of a plan and as numbers."""
