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
        ("postgresql://u@%2Ftmp:5433,%2Frun/d?port=7", [("/tmp", 5433), ("/run", 7)], "postgresql://u@/d?port=7"),
        ("postgresql://%2Ftmp%2Fa%3A1:2/d", [("/tmp/a:1", 2)], "postgresql:///d"),
        ("postgresql://db%2D1:1/d", [("db-1", 1)], "postgresql:///d"),
        ("postgresql://[fe80::1%25eth0]:1/d", [("fe80::1%eth0", 1)], "postgresql:///d"),
        ("postgresql:///d?host=/tmp/a:1&port=2", [("/tmp/a:1", 2)], "postgresql:///d?host=/tmp/a:1&port=2"),
        ("postgresql:///d?host=/tmp/%2541", [("/tmp/%41", None)], "postgresql:///d?host=/tmp/%2541"),
        ("postgresql:///d?host=/run/postgresql", [("/run/postgresql", None)], "postgresql:///d?host=/run/postgresql"),
        ("postgresql:///d", [], "postgresql:///d"),
        ("postgresql:///?service=memory", [], "postgresql:///?service=memory"),
        ("postgresql://db.example./d", [("db.example.", None)], "postgresql:///d"),
        ("postgresql://d%C3%A4tenbank,h/d", [("d\u00e4tenbank", None), ("h", None)], "postgresql:///d"),
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


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
def test_how_much_tls_is_wanted_is_one_of_the_modes_that_there_are(mode):
    target = parse_target(f"postgresql://h1,h2/d?sslmode={mode}&sslrootcert=/etc/ssl/a%20b.pem")
    assert target.options == {"sslmode": mode, "sslrootcert": "/etc/ssl/a b.pem"}


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("sslmode=", "option sslmode without a value"),
        ("sslmode=verify-full&sslmode=", "option sslmode without a value"),
        ("sslmode=require&sslrootcert=", "option sslrootcert without a value"),
        ("sslmode=verify_full", "sslmode that is none"),
        ("sslmode=Require", "sslmode that is none"),
        ("ssl=true", "unknown option of TLS"),
        ("ssl_mode=verify-full", "unknown option of TLS"),
        ("sslrootcerts=/etc/ssl/ca.pem", "unknown option of TLS"),
    ],
)
def test_an_option_of_tls_that_would_protect_less_than_it_says_is_refused(options, fault):
    with pytest.raises(ValueError, match=fault) as caught:
        parse_target(f"postgresql://u:s3cret@h1,h2/d?{options}")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("port", ["0", "65536", "x", "1.5", "²"])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(ValueError, match="no number from 1 to 65535"):
        parse_target(f"postgresql://h:{port}/d")


@pytest.mark.parametrize("name", ["db2..internal", ".internal", "db..", "a" * 64, f"db.{'a' * 64}.internal"])
@pytest.mark.parametrize("dsn", ["postgresql://u:s3cret@h1,{name}/d", "postgresql://u:s3cret@/d?host=h1,{name}"])
def test_a_name_that_cannot_be_looked_up_is_refused(dsn, name):
    with pytest.raises(ValueError, match="name cannot be looked up") as caught:
        parse_target(dsn.format(name=name))
    assert not isinstance(caught.value, UnicodeError)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "dsn", ["postgresql://u:12/s3cret@h/d", "postgresql://u:12/s3/cret@h1,h2/d?x=y", "postgresql://u/s3cret@h"]
)
def test_a_slash_in_a_password_is_refused_rather_than_taken_for_the_end_of_the_host(dsn):
    with pytest.raises(ValueError, match="percent-encoded") as caught:
        parse_target(dsn)
    assert "s3" not in str(caught.value)
