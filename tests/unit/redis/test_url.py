"""URLs of one server, of Sentinels and of a Cluster: what they say, and that nothing shows their passwords."""

import pytest

from durable_memory.adapters.redis import parse_redis_url
from durable_memory.adapters.redis.url import Address, RedisKind


@pytest.mark.parametrize(
    "text",
    [
        "redis://localhost",
        "redis://localhost:6380/3",
        "redis://:secret@localhost",
        "redis://user:secret@[::1]:6379/0",
        "rediss://user:secret@redis.example:6380/0?ssl_ca_certs=/etc/ssl/ca.pem&ssl_check_hostname=true",
        "redis+sentinel://localhost/memory",
        "redis+sentinel://user:secret@a:1,b,[::1]:3/memory/2?sentinel_username=watcher&sentinel_password=secret",
        "rediss+sentinel://:secret@a.example/memory?ssl_ca_certs=/etc/ssl/ca.pem&sentinel_password=secret",
        "redis+cluster://localhost:7000",
        "redis+cluster://:secret@a:1,[::1]:2/0",
        "rediss+cluster://user:secret@a,b,c?ssl_ca_certs=/etc/ssl/ca.pem",
        "rediss://user:secret@redis.example/0?ssl_cert_reqs=none&ssl_check_hostname=false",
    ],
)
def test_urls_are_taken_and_shown_without_password_and_options(text):
    url = parse_redis_url(text)
    assert url.text == text
    assert not any(word in f"{url} {url!r}" for word in ("secret", "ssl_ca_certs", "sentinel_password", "watcher"))
    assert str(url).startswith(text.split("://")[0] + "://")
    assert parse_redis_url(str(url)).addresses == url.addresses


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:6379",
        "redis:",
        "redis://",
        "redis:///0",
        "http://localhost:6379",
        "http+cluster://:secret@localhost:6379",
        "redis://:secret@localhost/zero",
        "redis://:secret@localhost:port",
        "redis://:secret@localhost:70000",
        "redis://:secret@localhost:0",
        "redis://:secret@localhost/0?decode_responses=true",
        "redis://:secret@localhost/0?ssl_ca_certs=/ca.pem",
        "redis://:secret@localhost/0?sentinel_password=secret",
        "redis://:secret@localhost/0?secret",
        "rediss://:secret@localhost/0?socket_timeout=1",
        "redis://:secret@localhost/0#fragment",
        "redis://:secret@a:1,b:2/0",
        "redis+sentinel://:secret@localhost",
        "redis+sentinel://:secret@localhost//0",
        "redis+sentinel://:secret@localhost,/memory",
        "redis+sentinel://:secret@a:1,b:port/memory",
        "redis+sentinel://:secret@a/memory/secret",
        "redis+sentinel://:secret@a/memory/0/1",
        "redis+sentinel://:secret@a/memory?secret=1",
        "redis+cluster://:secret@a:1,b:2/1",
        "redis+cluster://:secret@a:1,b:2/memory",
        "redis+cluster://:secret@a:1 ,b:2",
        "redis+cluster://:secret@a:1?sentinel_password=secret",
        "redis+elsewhere://:secret@a:1",
        "redis+sentinel://user:6/:secret@a",
        "redis+sentinel://us/er:secret@a/memory",
        "redis://user:6/:secret@a/0",
        "redis+cluster://user:6/:secret@a",
        "redis+sentinel://user:6?:secret@a",
        "rediss://:secret@a/0?ssl_ca_certs=",
        "rediss://:secret@a/0?ssl_cert_reqs=",
        "rediss://:secret@a/0?ssl_cert_reqs=REQUIRED",
        "rediss://:secret@a/0?ssl_check_hostname=",
        "rediss://:secret@a/0?ssl_check_hostname=on",
        "rediss://:secret@a/0?ssl_cert_reqs=none&ssl_check_hostname=true",
        "rediss://:secret@a/0?ssl_cert_reqs=none&ssl_ca_certs=/etc/ssl/ca.pem",
    ],
)
def test_other_urls_are_refused_without_being_quoted(text):
    with pytest.raises(ValueError) as refusal:
        parse_redis_url(text)
    assert ":secret" not in str(refusal.value)
    assert "@a" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize("text", ["nothing", "redis://a:1,b:2", "redis+sentinel://a:1"])
def test_a_refusal_says_what_the_forms_are(text):
    with pytest.raises(ValueError, match=r"redis://.* redis\+sentinel://.* redis\+cluster://.* TLS"):
        parse_redis_url(text)


@pytest.mark.parametrize("text", ["redis+sentinel://u:6/x@host", "redis://u:6/x@host/0", "redis+cluster://u:6/x@host"])
def test_a_password_with_a_slash_is_not_taken_for_a_name(text):
    with pytest.raises(ValueError, match="has to be percent-encoded"):
        parse_redis_url(text)


def test_a_name_is_shown_as_a_url_that_means_the_same():
    url = parse_redis_url("redis+sentinel://a:1/my%20%40memory%2F/2")
    assert url.primary_name == "my @memory/"
    assert parse_redis_url(str(url)).primary_name == url.primary_name


def test_a_url_of_sentinels_says_where_they_are_and_what_they_call_the_primary():
    url = parse_redis_url("redis+sentinel://user:p%40ss@a:1,b,a:1,[::1]:3/my%20memory/2?sentinel_password=s%2Fq+r")
    assert url.kind is RedisKind.SENTINEL
    assert url.addresses == (Address("a", 1), Address("b", 26_379), Address("::1", 3))
    assert url.primary_name == "my memory"
    assert url.of_server(Address("c", 6_379)) == "redis://user:p%40ss@c:6379/2"
    assert url.of_server(Address("::1", 6_379)) == "redis://user:p%40ss@[::1]:6379/2"
    assert url.of_sentinel(Address("a", 1)) == "redis://:s%2Fq%20r@a:1/"


def test_the_credentials_of_the_servers_are_not_given_to_the_sentinels():
    url = parse_redis_url("redis+sentinel://user:secret@a/memory")
    assert url.of_sentinel(Address("a", 26_379)) == "redis://a:26379/"


def test_a_url_of_a_cluster_says_where_some_of_it_is():
    url = parse_redis_url("rediss+cluster://user:secret@a:1,b?ssl_ca_certs=/etc/ssl/ca.pem")
    assert url.kind is RedisKind.CLUSTER
    assert url.addresses == (Address("a", 1), Address("b", 6_379))
    assert url.of_server(Address("c", 2)) == "rediss://user:secret@c:2/?ssl_ca_certs=%2Fetc%2Fssl%2Fca.pem"


def test_tls_is_for_sentinels_and_servers_alike():
    url = parse_redis_url("rediss+sentinel://a/memory?ssl_check_hostname=false")
    for one in (url.of_server(Address("b", 1)), url.of_sentinel(Address("b", 1))):
        assert one == "rediss://b:1/?ssl_check_hostname=false"
