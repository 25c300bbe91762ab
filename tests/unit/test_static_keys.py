"""The credentials file."""

import hashlib
import json

import pytest

from durable_memory.adapters.static_keys import InvalidKeysError, StaticKeys
from durable_memory.domain.caller import Role

_HASH = hashlib.sha256(b"token").hexdigest()
_KEY = {"sha256": _HASH, "name": "agent", "roles": ["reader", "writer"]}


@pytest.fixture
def write(tmp_path):
    def write(content, mode=0o600):
        path = tmp_path / "keys.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(mode)
        return path

    return write


def _faults(path) -> tuple[str, ...]:
    with pytest.raises(InvalidKeysError) as refused:
        StaticKeys.load(path)
    return refused.value.faults


def test_a_token_is_its_caller_and_every_other_text_is_nobody(write):
    keys = StaticKeys.load(write([_KEY, {**_KEY, "sha256": "A" * 64, "name": "other"}]))
    caller = keys.verify("token")
    assert caller is not None
    assert (caller.name, caller.roles) == ("agent", frozenset({Role.READER, Role.WRITER}))
    assert (caller.tenants, caller.principals, caller.scopes) == (None, None, None)
    for text in ("", "Token", "token ", "tokem", _HASH, "\udcff"):
        assert keys.verify(text) is None


def test_a_key_may_be_bound_to_names(write):
    keys = StaticKeys.load(write([{**_KEY, "tenants": ["acme"], "principals": ["user-1", "user-2"], "scopes": ["a"]}]))
    caller = keys.verify("token")
    assert caller is not None
    assert caller.tenants == frozenset({"acme"})
    assert caller.principals == frozenset({"user-1", "user-2"})
    assert caller.scopes == frozenset({"a"})


def test_one_caller_may_have_two_tokens_while_they_are_exchanged(write):
    keys = StaticKeys.load(write([_KEY, {**_KEY, "sha256": hashlib.sha256(b"next").hexdigest()}]))
    assert keys.verify("token") == keys.verify("next")
    assert len(keys) == 2


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644, 0o440])
def test_others_may_read_the_file(write, mode):
    assert len(StaticKeys.load(write([_KEY], mode))) == 1


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_others_may_not_write_it(write, mode):
    (fault,) = _faults(write([_KEY], mode))
    assert "can be written by others" in fault


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"sha256": "abc"}, "key 0: sha256 is not 64 hexadecimal digits"),
        ({"sha256": "g" * 64}, "key 0: sha256 is not 64 hexadecimal digits"),
        ({"sha256": 7}, "key 0: sha256 is not 64 hexadecimal digits"),
        ({"name": ""}, "key 0: name is missing"),
        ({"name": "a\nb"}, "key 0: name"),
        ({"name": None}, "key 0: name is not text"),
        ({"roles": []}, "key 0: roles is not a list of at least one role"),
        ({"roles": "reader"}, "key 0: roles is not a list of at least one role"),
        (
            {"roles": ["READER"]},
            "key 0: 'READER' is no role; there are activator, administrator, operator, reader, writer",
        ),
        ({"tenants": []}, "key 0: tenants is not a list of at least one name; leave it out to allow all"),
        ({"tenants": None}, "key 0: tenants is not a list of at least one name; leave it out to allow all"),
        ({"scopes": [""]}, "key 0: scopes is missing"),
        ({"tenant": ["acme"]}, "key 0: 'tenant' is no field of a key"),
    ],
)
def test_what_is_wrong_with_a_key_is_told(write, change, fault):
    (told,) = _faults(write([{**_KEY, **change}]))
    assert told.startswith(fault)


def test_all_faults_are_told_at_once_and_no_hash_is(write):
    faults = _faults(write([{"name": "agent"}, _KEY, {**_KEY, "roles": ["root"]}, _KEY, "key"], 0o666))
    assert [fault.partition(":")[0] for fault in faults[1:]] == ["key 0", "key 0", "key 2", "key 3", "key 4"]
    assert _HASH not in "".join(faults)


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "[{]", '"text"', '[{"name": "a", "name": "b"}]', "\ud83d"])
def test_a_file_of_another_form_is_refused(write, tmp_path, content):
    if content == "\ud83d":
        path = tmp_path / "keys.json"
        path.write_bytes(b"\xff\xfe")
        path.chmod(0o600)
    else:
        path = write(content)
    (fault,) = _faults(path)
    assert str(path) in fault


def test_a_missing_file_is_told(tmp_path):
    (fault,) = _faults(tmp_path / "none.json")
    assert "cannot be read: No such file or directory" in fault
