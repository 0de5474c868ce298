"""Suite: pytest in and out. The only room that imports pytest."""
