"""Slower devices than the machine has: limits by the kernel, and a device with latency. Names, values, and what cannot be."""
