"""Whose the blocks of a device are.

Here: files by their maps (`file_extents`), the file system's own by its tools (`layouts`), and both together (`owners`); both of
a disk that nobody has mounted (`resting`, `pool_at_rest`, `nilfs2_at_rest`).
Not here: what an engine calls a part of its file (`page_names` of its folder).
May import: `host`, `model`, `filesystem`.
Must not import: `visit`, `engines`, `plan`, `study`, `workloads`.
"""
