"""Plan: the program calls of a scenario, in order and as each launcher makes them. Pure."""
