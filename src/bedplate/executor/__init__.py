"""Executors: the same visit, here or elsewhere, and the study that is made of them."""
