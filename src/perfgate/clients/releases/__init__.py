"""Which release of a load client knows what: tables of the clients of vLLM and of SGLang.

A client has a release of its own: it measures any engine's server, and stays the same while the
engine's release moves. The options that never moved stand in `serving_clients`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from perfgate.core.errors import InputError
from perfgate.engines.release_tables import Option, ReleaseTable, ReleaseTables
from perfgate.scenarios.scenario import Workload


class BenchRelease(ReleaseTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of releases of a client of vLLM's family.

    `programs` holds the options that moved: `api` (which protocol is spoken), `dataset`,
    `temperature`, `warmups`, `ready_check`, `body` (more fields of every request's JSON),
    `heed_eos`, `no_stream`.

    Attributes:
        apis: program → endpoint of the server (``completions``, ``chat``) → the word for it.
        fixed_length: program → the ``--random-range-ratio`` with which every prompt and answer has
            the length that is asked for. The same word means opposite things.
        forces_eos: random prompts make the client ask that EOS is ignored, said or not.
        ready_check_s: seconds to wait for a first good answer, where the client no longer does
            unless it is told; None: it does, and ends with an error status where none comes.
        input_counted_by: who counts input tokens: the ``client``, before any chat template, or the
            ``server``, after it.
    """

    title: ClassVar[str] = "the load client"

    apis: Mapping[str, Mapping[str, str]]
    fixed_length: Mapping[str, str]
    forces_eos: bool = False
    ready_check_s: int | None = None
    input_counted_by: Literal["client", "server"] = "client"


class VllmBenchRelease(BenchRelease, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of vLLM's load clients: ``vllm bench serve``, and the script before it."""

    title: ClassVar[str] = "vLLM's load client"


class SglangBenchRelease(BenchRelease, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of ``sglang.bench_serving``."""

    title: ClassVar[str] = "SGLang's load client"


_HERE = Path(__file__).parent
_OTHER = "use another release of the client: it need not be the engine's"
VLLM = ReleaseTables(VllmBenchRelease, _HERE / "vllm", hint=_OTHER, examples="0.11.0")
SGLANG = ReleaseTables(SglangBenchRelease, _HERE / "sglang", hint=_OTHER, examples="0.5.3")
Tables = ReleaseTables[VllmBenchRelease] | ReleaseTables[SglangBenchRelease]


def release(tables: Tables, version: str, program: str) -> BenchRelease:
    """The table that holds for a release of a client.

    Args:
        tables: of the client.
        version: as the client tells it, or the document; empty: not known, the newest that has the
            program.
        program: the client's program, as its recorded pages name it.

    Raises:
        InputError: it is no version, too old, or that release has no such program.
    """
    having = [one for one in tables.all() if program in one.programs]
    if not version:
        return having[-1]
    try:
        found = tables.release(version)
    except InputError as error:
        told = {**error.arguments, "field": "client version", "hint": _OTHER}
        raise InputError(**told) from error
    if program not in found.programs:
        later = tables.all()[tables.all().index(having[-1]) + 1 :]
        before = f", before {later[0].since}" if later else ""
        raise InputError(
            f"this release has no usable {program}",
            field="client version",
            found=version,
            expected=f"{having[0].since} or later{before}",
            hint="clients vllm-benchmark-serving and vllm-bench are the same client, before and "
            "after it became a command of vllm",
        )
    return found


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
        problem = f"{self.client} of this release cannot do it: {self.program} {self.release}"
        hint = "use a release of the client that can, or change the workload"
        hint += "; docs/reference/parse.md lists what each release does"
        return InputError(problem, field=field, found=found, expected=expected, hint=hint)
