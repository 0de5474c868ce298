"""Files: where they are, whom they are trusted from, how they are read, written and kept."""
