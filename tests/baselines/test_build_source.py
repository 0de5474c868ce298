"""A build's source: which image is started, and its words."""

from tables import each

from perfgate.baselines.baseline import BuildSource, without_tag

DIGEST = "sha256:" + "cd" * 32
ID = "sha256:" + "ab" * 32
NAME = "nvcr.io/nvidia/tensorrt-llm/release"


@each(
    ("source", "started"),
    [
        (BuildSource(image=f"{NAME}:1.0", digest=DIGEST, image_id=ID), f"{NAME}@{DIGEST}"),
        (BuildSource(image="own:5000/a:1", digest=DIGEST), f"own:5000/a@{DIGEST}"),
        (BuildSource(image="mine:dev", image_id=ID), ID),
        (BuildSource(image="mine:dev"), "mine:dev"),
        (BuildSource(image=f"{NAME}@{DIGEST}", digest=DIGEST), f"{NAME}@{DIGEST}"),
        (BuildSource(prefix="/opt/a"), ""),
    ],
)
def test_what_cannot_move_is_started_rather_than_a_tag(source: BuildSource, started: str) -> None:
    assert source.image_to_start == started


def test_a_registrys_port_is_no_tag() -> None:
    assert [*map(without_tag, ("own:5000/a", "own:5000/a:1", f"a@{DIGEST}", "a"))] == [
        *("own:5000/a", "own:5000/a", "a", "a")
    ]


def test_words_are_as_a_command_line_has_them() -> None:
    source = BuildSource(
        image="a:1", prefix="/opt/x", programs={"PERFGATE_PROGRAM_A": "/b c"}, settings=("d.e=1",)
    )
    assert source.description == "a:1,/opt/x,PERFGATE_PROGRAM_A=/b c,d.e=1"
    assert BuildSource(image="mine:dev", image_id=ID).description == "mine:dev"
    assert BuildSource().description == "this"
