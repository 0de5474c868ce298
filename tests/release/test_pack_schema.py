"""The published schema of manifests is the one by which they are read."""

import json
from pathlib import Path
from typing import get_args

import made_packs
from jsonschema import Draft202012Validator

from perfgate.release import pack_manifest
from perfgate.release.pack_layout import Role
from perfgate.release.pack_manifest import manifest_text

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "reference" / "evidence_manifest.schema.json"


def test_the_published_schema_is_the_one_in_use() -> None:
    used = Path(pack_manifest.__file__).with_name(PUBLISHED.name)
    assert PUBLISHED.read_text() == used.read_text()


def test_it_knows_every_field_and_role() -> None:
    schema = json.loads(PUBLISHED.read_text())
    Draft202012Validator.check_schema(schema)
    written = json.loads(manifest_text(made_packs.manifest()))
    assert not [*Draft202012Validator(schema).iter_errors(written)]
    assert written.keys() == schema["properties"].keys() == {*schema["required"]}
    line = schema["properties"]["files"]["items"]["properties"]
    assert line.keys() == written["files"][0].keys()
    assert line["role"]["enum"] == [*get_args(Role)]
