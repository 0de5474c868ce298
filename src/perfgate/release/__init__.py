"""Release: is a build fit to be released, and the evidence that shows it years later."""
