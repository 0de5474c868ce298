"""What a run's report can be written as, one module each."""
