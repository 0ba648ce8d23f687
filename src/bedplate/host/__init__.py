"""The only code that changes a machine: commands, devices, mounts, tunables, control groups."""
