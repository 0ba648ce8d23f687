"""What the comparisons leave standing, and what to choose and to measure next."""
