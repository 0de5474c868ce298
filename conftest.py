"""Wires the suite together: the plugin and the fixtures. Nothing else belongs here."""

pytest_plugins = ["perfgate.plugin", "fixtures.measuring"]
