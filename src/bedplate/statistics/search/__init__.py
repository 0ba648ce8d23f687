"""The best cell within a budget of time: a model of cells by their factors, the choice of visits, the end and its proof."""
