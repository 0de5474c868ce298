"""Programs: their calls as plain values, where they are, what they are asked and print."""
