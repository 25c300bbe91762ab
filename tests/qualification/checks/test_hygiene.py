"""What is planted is found, in whatever form and however it is split; what is clean is clean."""

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.qualification.checks.hygiene import Forbidden, Scanner, Traces, scan

_SECRET = "dmk_7Hq/ü-4fWz+Lp0"
_WORD = "zvilbrakeen"
_TEXT = "The spare key of the bicycle shed hangs behind the kitchen door, says user 1."
_FORBIDDEN = Forbidden(secrets=[_SECRET], words=[_WORD], texts=[_TEXT])


def _escaped(text: str) -> bytes:
    return "".join(f"\\u{ord(character):04X}" for character in text).encode()


@pytest.mark.parametrize("planted", [_SECRET, _WORD])
@pytest.mark.parametrize(
    "written",
    [
        lambda text: text.encode(),
        lambda text: text.upper().encode() if text.isascii() else text.encode(),
        lambda text: json.dumps({"key": f"a {text} b"}).encode(),
        _escaped,
        lambda text: text.encode().hex().encode(),
        lambda text: text.encode().hex().upper().encode(),
        lambda text: quote(text, safe="").encode(),
        lambda text: base64.b64encode(text.encode()),
        lambda text: base64.b64encode(b"a" + text.encode()),
        lambda text: base64.b64encode(b"ab" + text.encode() + b"c"),
        lambda text: base64.urlsafe_b64encode(b"Bearer " + text.encode() + b"!!"),
        lambda text: base64.b64encode(b"user:" + text.encode() + b"\x00\xff"),
    ],
)
def test_a_planted_leak_is_found_in_every_form(planted, written):
    assert Scanner(_FORBIDDEN).scan([b"some bytes " + written(planted) + b" and more"])


@pytest.mark.parametrize("size", [1, 2, 7, 16])
def test_a_leak_that_is_split_across_buffers_is_found(size):
    said = b"x" * 40 + _SECRET.encode() + b"y" * 40

    found = Scanner(_FORBIDDEN).scan(said[at : at + size] for at in range(0, len(said), size))

    assert found == ["secret at byte 40"]


def test_a_longer_piece_of_a_text_is_found_and_a_turn_of_phrase_is_not():
    scanner = Scanner(_FORBIDDEN)

    assert scanner.holds(f"error near {_TEXT[5:60]!r}")
    assert not scanner.holds(f"error near {_TEXT[:12]!r}")


def test_clean_bytes_are_clean():
    assert not Scanner(_FORBIDDEN).scan([os.urandom(200_000), b"dmk_7Hq", _WORD[:-1].encode()])


def test_what_is_said_of_a_leak_does_not_repeat_it():
    (found,) = Scanner(_FORBIDDEN).scan([_WORD.encode()])

    assert _WORD not in found


def test_files_are_scanned_and_named(tmp_path: Path):
    leaking, clean = tmp_path / "server-0.log", tmp_path / "server-1.log"
    leaking.write_bytes(b"-" * (1 << 20) + _SECRET.encode())
    clean.write_text("{}\n")

    found = scan(Traces(forbidden=_FORBIDDEN, files=[leaking, clean]))

    assert found.problems == [f"server-0.log: secret at byte {1 << 20}"]
    assert (found.files, found.bytes) == (2, (1 << 20) + len(_SECRET.encode()) + 3)


def test_a_file_that_is_gone_was_not_looked_at(tmp_path: Path):
    found = scan(Traces(forbidden=_FORBIDDEN, files=[tmp_path / "gone.log"]))

    assert found.problems == ["gone.log is gone, and was not looked at"]


def test_what_was_lost_was_not_looked_at():
    found = scan(Traces(lost=["7 bytes found no room"]) | Traces(forbidden=_FORBIDDEN, lost=["8 bytes found no room"]))

    assert found.problems == ["7 bytes found no room", "8 bytes found no room"]


def test_a_file_whose_name_tells_is_found(tmp_path: Path):
    (tmp_path / f"{_WORD}.txt").write_text("nothing")

    assert scan(Traces(forbidden=_FORBIDDEN, files=list(tmp_path.iterdir()))).problems


def test_what_would_be_found_by_chance_is_refused():
    with pytest.raises(ValueError, match="fewer than 6"):
        Scanner(Forbidden(secrets=["abc"]))
