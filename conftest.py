"""Wires the suite together. Nothing else belongs here.

The options are known before: installing perfgate makes them an entry point of pytest.
"""

pytest_plugins = ["perfgate.suite.plugin"]
