"""Assembly: all that a verdict rests on, gathered from measurements, references and scenarios."""
