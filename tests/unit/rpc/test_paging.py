"""Page tokens: what they carry, and what is refused."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.runtime import ManualClock
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.paging import MAX_AGE, PageTokens
from durablememory.v1 import repository_service_pb2

_METHOD = "/durablememory.v1.RepositoryService/ListRevisions"
_NAMESPACE = b"\x01" * 32
_NEW_KEY, _OLD_KEY, _FOREIGN_KEY = b"n" * 32, b"o" * 32, b"f" * 32
_STATE: JsonObject = {"after": "node-1", "at": 7}


def _clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


def _request(**fields):
    return repository_service_pb2.ListRevisionsRequest(**{"node_id": "node-1", **fields})


def _assert_refused(tokens, token, method=_METHOD, namespace=_NAMESPACE, request=None):
    with pytest.raises(DomainError) as refused:
        tokens.decode(method, namespace, request or _request(), token)
    assert refused.value.reason is Reason.INVALID_PAGE_TOKEN
    assert refused.value.metadata == {}


def test_a_token_gives_back_its_state_to_the_same_listing():
    tokens = PageTokens(_clock(), [_NEW_KEY])
    token = tokens.encode(_METHOD, _NAMESPACE, _request(page_size=10), _STATE)
    assert tokens.decode(_METHOD, _NAMESPACE, _request(page_size=20, page_token=token), token) == _STATE


def test_a_token_is_bound_to_method_namespace_and_filters():
    tokens = PageTokens(_clock(), [_NEW_KEY])
    token = tokens.encode(_METHOD, _NAMESPACE, _request(), _STATE)
    _assert_refused(tokens, token, method="/durablememory.v1.RepositoryService/ListNodes")
    _assert_refused(tokens, token, namespace=b"\x02" * 32)
    _assert_refused(tokens, token, request=_request(node_id="node-2"))


def test_a_token_of_the_older_of_two_keys_is_still_good_and_one_of_a_foreign_key_never_is():
    clock = _clock()
    tokens = PageTokens(clock)
    tokens.use_keys([_NEW_KEY, _OLD_KEY])
    for key, good in ((_NEW_KEY, True), (_OLD_KEY, True), (_FOREIGN_KEY, False)):
        token = PageTokens(clock, [key]).encode(_METHOD, _NAMESPACE, _request(), _STATE)
        if good:
            assert tokens.decode(_METHOD, _NAMESPACE, _request(), token) == _STATE
        else:
            _assert_refused(tokens, token)


def test_a_token_is_good_for_three_days():
    clock = _clock()
    tokens = PageTokens(clock, [_NEW_KEY])
    token = tokens.encode(_METHOD, _NAMESPACE, _request(), _STATE)
    clock.advance(MAX_AGE)
    assert tokens.decode(_METHOD, _NAMESPACE, _request(), token) == _STATE
    clock.advance(timedelta(microseconds=1))
    _assert_refused(tokens, token)


@given(position=st.integers(0), flip=st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(position, flip):
    tokens = PageTokens(_clock(), [_NEW_KEY])
    token = tokens.encode(_METHOD, _NAMESPACE, _request(), _STATE)
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[position % len(raw)] ^= flip
    _assert_refused(tokens, base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode())


@given(token=st.text(max_size=200))
def test_no_text_but_a_token_is_a_token(token):
    _assert_refused(PageTokens(_clock(), [_NEW_KEY]), token)


@pytest.mark.parametrize("token", ["", "AQ", "A" * 5_000, "AQ==", "é", "\x00", "AQ\n"])
def test_garbage_is_refused(token):
    _assert_refused(PageTokens(_clock(), [_NEW_KEY]), token)


def test_a_token_has_one_spelling():
    tokens = PageTokens(_clock(), [_NEW_KEY])
    for padding in range(3):
        token = tokens.encode(_METHOD, _NAMESPACE, _request(), {"after": "x" * padding})
        _assert_refused(tokens, token + "=")
        if len(token) % 4:
            alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            _assert_refused(tokens, token[:-1] + alphabet[alphabet.index(token[-1]) + 1])


def test_before_the_keys_are_there_no_token_is_written_or_believed():
    token = PageTokens(_clock(), [_NEW_KEY]).encode(_METHOD, _NAMESPACE, _request(), _STATE)
    tokens = PageTokens(_clock())
    _assert_refused(tokens, token)
    with pytest.raises(DomainError) as refused:
        tokens.encode(_METHOD, _NAMESPACE, _request(), _STATE)
    assert refused.value.reason is Reason.NOT_SERVING
