"""Rules: what a scenario must keep beyond its schema, and the names that it may use."""
