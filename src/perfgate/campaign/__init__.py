"""Campaign: fresh starts of one scenario in one session, and what all campaigns share."""
