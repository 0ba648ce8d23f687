"""What the program says of itself: examples behind its help, the manual page, the generated parts of docs/."""
