"""Registered: the engines, clients and evaluators that scenarios may name, as they are by now.

One of a person's own counts once its module was imported.
"""

from perfgate.clients.base import Offline, client
from perfgate.engines.base import engine
from perfgate.evaluators.base import evaluator
from perfgate.scenarios.rules.vocabulary import Vocabulary
from perfgate.scenarios.scenario import SERVED_SMOKE


def registered() -> Vocabulary:
    """What the registries hold at this moment."""
    return Vocabulary(
        {name: cls.words() for name, cls in engine.items()},
        tuple(client),
        (SERVED_SMOKE, *(name for name, cls in client.items() if issubclass(cls, Offline))),
        {name: cls.scores() for name, cls in evaluator.items()},
        {name: cls.refused_extras for name, cls in engine.items()},
        tuple(rule for cls in engine.values() for rule in cls.rules),
    )
