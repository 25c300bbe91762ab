"""Which servers a database's URL names, and what is left of it for each of them."""

import pytest

from durable_memory.adapters.postgres.hosts import Host, parse_target


@pytest.mark.parametrize(
    ("dsn", "hosts", "without"),
    [
        ("postgresql://u:p@h/d", [("h", None)], "postgresql://u:p@/d"),
        ("postgresql://h1:1,h2/d?x=y", [("h1", 1), ("h2", None)], "postgresql:///d?x=y"),
        ("postgresql://u@[::1]:1,[2001:db8::2]/d", [("::1", 1), ("2001:db8::2", None)], "postgresql://u@/d"),
        ("postgresql://h1,h2:2/d?port=7", [("h1", 7), ("h2", 2)], "postgresql:///d?port=7"),
        ("postgresql:///d?host=h1,h2&port=1,2", [("h1", 1), ("h2", 2)], "postgresql:///d?host=h1,h2&port=1,2"),
        ("postgresql://%2Frun%2Fpostgresql/d", [("/run/postgresql", None)], "postgresql:///d"),
        ("postgresql:///d?host=/run/postgresql", [("/run/postgresql", None)], "postgresql:///d?host=/run/postgresql"),
        ("postgresql:///d", [], "postgresql:///d"),
        ("postgresql:///?service=memory", [], "postgresql:///?service=memory"),
        ("postgresql://h", [("h", None)], "postgresql://"),
    ],
)
def test_hosts_are_taken_out_of_the_url_in_their_order(dsn, hosts, without):
    target = parse_target(dsn)
    assert target.hosts == tuple(Host(name, port) for name, port in hosts)
    assert target.dsn == without


@pytest.mark.parametrize("wanted", ["any", "primary", "read-write"])
def test_what_the_primary_satisfies_may_be_asked_for(wanted):
    assert len(parse_target(f"postgresql://h1,h2/d?target_session_attrs={wanted}").hosts) == 2


@pytest.mark.parametrize("wanted", ["standby", "prefer-standby", "read-only", "Primary", "whatever"])
def test_what_the_primary_does_not_satisfy_is_refused(wanted):
    with pytest.raises(ValueError, match="target_session_attrs can be primary, read-write or any"):
        parse_target(f"postgresql://h1,h2/d?target_session_attrs={wanted}")


@pytest.mark.parametrize("port", ["0", "65536", "x", "1.5", "²"])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(ValueError, match="no number from 1 to 65535"):
        parse_target(f"postgresql://h:{port}/d")
