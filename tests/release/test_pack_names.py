"""Names of files in a pack: what any system can unpack, and nothing else."""

from tables import each

from perfgate.release.pack_archive import entry_head, pax_path
from perfgate.release.pack_names import LONGEST_PATH, colliding_names, problem_of_name


@each("path", ["a", "runs/a b/c~1.txt", "é/ü.json", "a" * 255, "a/" * 511 + "a", "..a/b.."])
def test_what_is_allowed(path: str) -> None:
    assert problem_of_name(path) is None


@each(
    ("path", "told"),
    [
        ("", "empty part"),
        ("/a", "absolute"),
        ("a/", "empty part"),
        ("../a", "leaves"),
        ("a/./b", "leaves"),
        ("a\\b", "backslash"),
        ("a\x00", "cannot be seen"),
        ("a\u202eb", "cannot be seen"),
        ("a\udc80", "cannot be seen"),
        ("e\u0301", "composed"),
        ("a" * 256, "longer than 255"),
        ("é" * 128, "longer than 255"),
        ("a/" * 512 + "a", f"longer than {LONGEST_PATH}"),
    ],
)
def test_what_is_not(path: str, told: str) -> None:
    assert told in (problem_of_name(path) or "")


@each(
    ("paths", "pair"),
    [
        (["a/b", "a/c", "b"], None),
        (["a/b", "a/B"], ("a/b", "a/B")),
        (["A/b", "a/c"], ("A", "a")),
        (["stra\u00dfe", "STRASSE"], ("stra\u00dfe", "STRASSE")),
        (["a", "a/b"], ("a", "a/")),
        (["a/b", "A"], ("A", "a/")),
        (["\u212a", "k"], ("\u212a", "k")),
    ],
)
def test_names_that_are_one_somewhere(paths: list[str], pair: tuple[str, str] | None) -> None:
    assert colliding_names(paths) == pair


@each("length", [*range(88, 108), 980, 990, 1000])
def test_a_long_path_is_read_as_it_was_written(length: int) -> None:
    path = "é" + "x" * length
    head = entry_head(path, 5, 7)
    assert len(head) % 512 == 0
    size = int(head[124:135], 8)
    assert pax_path(head[512 : 512 + size]) == path
    assert pax_path(head[512 : 511 + size]) is None
