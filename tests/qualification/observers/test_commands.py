"""What MONITOR tells is read as it was meant, and replayed."""

from tests.qualification.observers.commands import Agreement, Replay, compared, parse

GRANT = (
    b'+1796031788.504582 [0 lua] "HSET" "dm:{ab}:lease" "owner" "own\\"er" "nonce" "n" "fence" "7" "granted_at" "1"\r\n'
)


def line(text: str) -> bytes:
    return f"+100.5 [0 lua] {text}\r\n".encode()


def replayed(replay: Replay, text: str) -> bool:
    command = parse(line(text))
    assert command is not None
    return replay.apply(command)


def test_a_command_of_a_script_is_read():
    command = parse(GRANT)
    assert command is not None
    assert (command.at, command.name, command.partition, command.kind) == (1796031788.504582, "HSET", "ab", "lease")
    assert command.arguments == ("owner", 'own"er', "nonce", "n", "fence", "7", "granted_at", "1")


def test_escaped_bytes_are_what_they_were():
    command = parse(line('"HSET" "dm:{ab}:manifest" "x" "a\\\\b\\x00\\n\\xff"'))
    assert command is not None
    assert command.arguments[1] == "a\\b\x00\n\xff"


def test_what_is_about_something_else_is_left_out():
    assert parse(b'+1.5 [0 127.0.0.1:4] "HSET" "dm:{ab}:lease" "owner" "o"\r\n') is None
    assert parse(line('"PERSIST" "dm:{ab}:seg:s1"')) is None
    assert parse(line('"TIME"')) is None


def test_a_lease_is_replayed_from_grant_to_end():
    replay = Replay()
    assert replayed(replay, '"HSET" "dm:{ab}:lease" "owner" "o" "nonce" "n" "fence" "1"')
    assert replayed(replay, '"PEXPIRE" "dm:{ab}:lease" "3000"')
    assert replay.expires_at == 103.5
    assert not replayed(replay, '"HMGET" "dm:{ab}:lease" "owner"')
    replay.expire(103.4)
    assert replay.lease["owner"] == "o"
    replay.expire(103.5)
    assert replay == Replay()


def test_a_lease_that_is_given_back_is_nobodys():
    replay = Replay({"owner": "o"}, 103.0)
    assert replayed(replay, '"DEL" "dm:{ab}:lease"')
    assert replay == Replay()


def test_a_manifest_that_is_cleared_is_seen_when_its_fence_is_there_again():
    replay = Replay(manifest={"highest_fence": "3", "index_revision": "2"})
    assert not replayed(replay, '"DEL" "dm:{ab}:manifest"')
    assert replayed(replay, '"HSET" "dm:{ab}:manifest" "highest_fence" "3"')
    assert replay.manifest == {"highest_fence": "3"}


def test_what_is_held_is_compared_with_what_should_be():
    told, held = Replay({"owner": "o"}, 103.0, {"highest_fence": "3"}), Replay({"owner": "o"}, 103.0)
    assert compared(told, held, 101.0, slack=0.1) is Agreement.ANOTHER
    held.manifest["highest_fence"] = "3"
    assert compared(told, held, 101.0, slack=0.1) is Agreement.SAME
    held.lease["owner"] = "another"
    assert compared(told, held, 101.0, slack=0.1) is Agreement.ANOTHER
    assert compared(told, Replay(manifest=held.manifest), 101.0, slack=0.1) is Agreement.ANOTHER
    assert compared(told, Replay(manifest=held.manifest), 103.5, slack=0.1) is Agreement.SAME


def test_a_lease_that_ends_just_now_is_compared_later_and_the_manifest_at_once():
    told, held = Replay({"owner": "o"}, 103.0, {"highest_fence": "3"}), Replay(manifest={"highest_fence": "3"})
    assert compared(told, held, 102.9995, slack=0.1) is Agreement.NOT_YET
    # By its milliseconds left it is there a little longer.
    assert compared(Replay(manifest=told.manifest), told, 102.9995, slack=0.1) is Agreement.NOT_YET
    held.manifest["highest_fence"] = "2"
    assert compared(told, held, 102.9995, slack=0.1) is Agreement.ANOTHER
