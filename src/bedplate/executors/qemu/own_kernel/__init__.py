"""Kernels of the user's own: what an image says of itself, what a guest needs of it, and how one is built from a tree."""
