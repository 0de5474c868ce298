"""Session header: what a session of the suite measures, in two lines before its first test."""

from collections.abc import Sequence

import pytest

from perfgate.core.paths import repository
from perfgate.suite.parametrize import selected_by
from perfgate.suite.plugin import SESSION
from perfgate.suite.run_opening import needs
from perfgate.suite.usage_errors import usage_errors


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> list[str]:
    """Scenarios, engines, references, launcher and gate repository; nothing for other tests."""
    selected = {item.nodeid: probe for item in items if (probe := selected_by(item))}
    if not selected or config.option.verbose < 0:
        return []
    session = config.stash[SESSION]
    scenarios = {one.id: one for found in needs(selected).values() for one in found}.values()
    engines = sorted({one.engine.name for one in scenarios})
    references = sorted({one.gate.reference for one in scenarios})
    with usage_errors():
        compared = "A/B" if session.options.ab else ", ".join(references)
        return [
            f"perfgate: scenarios: {len(scenarios)}; engine: {', '.join(engines)}; "
            f"launcher: {session.option('--launcher')}; reference: {compared}",
            f"gate repository: {repository()}",
        ]
