"""perfgate: did this inference build get slower or less accurate, and can we prove it?"""
