"""Options of a load client that moved from release to release: rendered, or refused. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from perfgate.clients.releases import BenchRelease
from perfgate.core.errors import InputError
from perfgate.engines.release_tables import Option
from perfgate.scenarios.scenario import Workload

COMPLETIONS_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


@dataclass(frozen=True)
class BenchOptions:
    """The options of one program of one release.

    Attributes:
        client: name of the client, for messages.
        table: of the release.
        program: as the client's recorded pages name it.
    """

    client: str
    table: BenchRelease
    program: str

    @property
    def release(self) -> str:
        """The release, for people."""
        return self.table.version or f"{self.table.since} and later"

    def has(self, setting: str) -> bool:
        """Whether the release has an option for it."""
        return setting in self.table.options(self.program)

    def given(self, setting: str, value: str | int | None = None, *, field: str) -> list[str]:
        """The option for a setting, with its value; a flag has none.

        Args:
            setting: as the tables name it.
            value: what it is given.
            field: of the scenario, for messages.

        Raises:
            InputError: this release has no such option, or not this value.
        """
        option: Option | None = self.table.options(self.program).get(setting)
        if option is None or option.name is None:
            raise self.refused(field, value, "not to be set")
        if option.choices and str(value) not in option.choices:
            raise self.refused(field, value, "one of " + ", ".join(option.choices))
        return [option.name] if option.flag else [option.name, str(value)]

    def api(self, workload: Workload) -> list[str]:
        """The option that says which protocol is spoken.

        Raises:
            InputError: this release speaks another one alone.
        """
        words = self.table.apis[self.program]
        if workload.api not in words:
            raise self.refused("workload.api", workload.api, "one of " + ", ".join(words))
        return self.given("api", words[workload.api], field="workload.api")

    def fixed_length(self) -> list[str]:
        """What makes every random prompt and answer as long as is asked for."""
        return ["--random-range-ratio", self.table.fixed_length[self.program]]

    def body(self, fields: Mapping[str, object], *, field: str) -> list[str]:
        """The option that puts more fields into every request.

        Raises:
            InputError: this release has none.
        """
        return self.given("body", json.dumps(fields, separators=(",", ":")), field=field)

    def refused(self, field: str, found: object, expected: str) -> InputError:
        """What a release cannot do is refused: dropped silently, another load would be measured."""
        return InputError(
            f"{self.client} of this release cannot do it: {self.program} {self.release}",
            field=field,
            found=found,
            expected=expected,
            hint="use a release of the client that can, or change the workload; "
            "docs/reference/parse.md lists what each release does",
        )
