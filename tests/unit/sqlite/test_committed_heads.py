"""Heads in memory: never older than a commit that was answered, nor than what a read has shown."""

from dataclasses import replace

from durable_memory.adapters.sqlite.heads import Heads
from durable_memory.domain.state import Head

KEY = b"k" * 32
OTHER = b"o" * 32


def at(revision: int, session_revision: int = 0, history_id: str = "h") -> Head:
    return Head(history_id=history_id, revision=revision, session_revision=session_revision)


def test_a_commit_moves_the_head():
    heads = Heads()
    assert heads.get(KEY) is None
    assert heads.written(KEY, at(1))
    assert heads.written(KEY, at(2))
    assert heads.written(KEY, at(2, session_revision=1))
    assert (heads.get(KEY), heads.get(OTHER)) == (at(2, session_revision=1), None)


def test_a_commit_that_a_read_overtook_does_not_move_the_head_back():
    heads = Heads()
    assert heads.read(KEY, at(3), heads.epoch)
    assert not heads.written(KEY, at(2))
    assert not heads.written(KEY, at(3))
    assert heads.get(KEY) == at(3)


def test_a_read_of_an_older_snapshot_changes_nothing():
    heads = Heads()
    heads.written(KEY, at(3, session_revision=1))
    for older in (at(2, session_revision=1), at(3), at(3, session_revision=1)):
        assert not heads.read(KEY, older, heads.epoch)
    assert heads.get(KEY) == at(3, session_revision=1)


def test_an_import_replaces_the_history_of_an_empty_namespace():
    heads = Heads()
    heads.read(KEY, at(0), heads.epoch)
    assert heads.written(KEY, at(0, history_id="imported"))
    assert not heads.read(KEY, at(0), heads.epoch)
    assert heads.get(KEY) == at(0, history_id="imported")


def test_when_there_are_too_many_all_are_forgotten_and_older_reads_are_not_believed():
    heads = Heads(most=2)
    began = heads.epoch
    heads.written(KEY, at(5))
    heads.written(OTHER, at(1))
    heads.written(OTHER, at(2))
    heads.written(b"third", at(1))
    assert heads.get(KEY) is None
    assert not heads.read(KEY, replace(at(5), revision=4), began)
    assert heads.get(KEY) is None
    assert heads.read(KEY, at(5), heads.epoch)
