"""One visit, from preflight to clean-up: the order of the steps, and undoing them."""
