"""From a TOML text to cells and a schedule; pure but for the files that a plan names beside itself."""
