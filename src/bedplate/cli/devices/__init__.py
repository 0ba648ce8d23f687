"""Commands about single disks."""
