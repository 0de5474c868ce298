"""Questions: numbers from anywhere, put to the gate one line at a time."""
