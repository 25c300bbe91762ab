"""Which servers a database's URL names, and what is left of it for each of them."""

import pytest

from durable_memory.adapters.postgres.hosts import Host, parse_target
from durable_memory.adapters.postgres.tls import tls_file_faults


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
        ("sslmode=require&sslnegotiation=x", "sslnegotiation that is none"),
        ("sslmode=require&ssl_min_protocol_version=TLS1.2", "ssl_min_protocol_version that is none"),
        ("sslmode=require&ssl_max_protocol_version=1.3", "ssl_max_protocol_version that is none"),
        ("ssl=true", "unknown option of TLS"),
        ("ssl_mode=verify-full", "unknown option of TLS"),
        ("sslrootcerts=/etc/ssl/ca.pem", "unknown option of TLS"),
    ],
)
def test_an_option_of_tls_that_would_protect_less_than_it_says_is_refused(options, fault):
    with pytest.raises(ValueError, match=fault) as caught:
        parse_target(f"postgresql://u:s3cret@h1,h2/d?{options}")
    assert "s3cret" not in str(caught.value)


def _faults(url, environment=None):
    target = parse_target(url)
    return list(tls_file_faults(target.options, environment or {}, [host.name for host in target.hosts]))


@pytest.fixture
def no_user(monkeypatch, tmp_path):
    """A user who has no files of TLS."""
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.usefixtures("no_user")
@pytest.mark.parametrize(
    ("options", "environment", "fault"),
    [
        ("sslrootcert=/ca.pem", {}, "/ca.pem with sslrootcert, which nobody looks at with sslmode=prefer"),
        ("sslcrl=/crl.pem", {}, "/crl.pem with sslcrl, which nobody looks at with sslmode=prefer"),
        ("sslmode=allow&sslrootcert=/ca.pem", {}, "nobody looks at with sslmode=allow"),
        ("sslmode=disable&sslrootcert=/ca.pem", {}, "nobody looks at with sslmode=disable"),
        ("sslrootcert=/ca.pem", {"PGSSLMODE": "disable"}, "nobody looks at with sslmode=disable"),
        ("sslmode=prefer&sslrootcert=/ca.pem", {"PGSSLMODE": "verify-full"}, "nobody looks at with sslmode=prefer"),
        ("service=&sslrootcert=/ca.pem", {}, "nobody looks at with sslmode=prefer"),
        ("sslrootcert=/ca.pem", {"PGSERVICE": "memory"}, "nobody looks at with sslmode=prefer"),
        ("sslmode=prefer&sslnegotiation=direct", {}, "sslnegotiation=direct, and with sslmode=prefer not"),
        ("sslmode=prefer", {"PGSSLNEGOTIATION": "direct"}, "sslnegotiation=direct, and with sslmode=prefer not"),
        ("sslmode=require", {"PGSSLNEGOTIATION": "x"}, "PGSSLNEGOTIATION, which is none of postgres, direct"),
        ("", {"PGSSLMODE": "Require"}, "PGSSLMODE, which is none of disable,"),
        ("", {"PGSSLMODE": ""}, "PGSSLMODE, which is none of disable,"),
        ("", {"PGSSLMODE": "verify_full"}, "asks for sslmode=verify-full without sslrootcert"),
    ],
)
def test_what_would_protect_less_than_it_says_is_told_where_all_of_it_is_known(options, environment, fault):
    (told,) = _faults(
        f"postgresql://h1,%2Frun%2Fpostgresql/d?{options}" if options else "postgresql://h1/d", environment
    )
    assert fault in told


@pytest.mark.usefixtures("no_user")
def test_revoked_certificates_are_of_no_use_where_none_is_checked():
    url = "postgresql://h/d?sslmode=require&sslcrl=/nowhere/crl.pem"
    assert "has sslcrl without sslrootcert=FILE" in _faults(url)[0]
    told = _faults(url, {"PGSSLROOTCERT": "/nowhere/ca.pem"})
    assert [fault.partition(" with ")[2][:11] for fault in told] == ["sslrootcert", "sslcrl, whi"]


@pytest.mark.usefixtures("no_user")
@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("postgresql://%2Frun%2Fpostgresql/d", {}),
        ("postgresql:///d", {"PGHOST": "/run/a,/run/b"}),
        ("postgresql:///d?service=memory", {}),
    ],
)
def test_files_that_nobody_reads_are_not_looked_at(url, environment):
    """The driver speaks no TLS on the socket of this machine unless it is told to, and leaves the rest to a service."""
    stale = {"PGSSLCERT": "/nowhere/client.pem"}
    assert _faults(url, stale | environment) == []
    assert len(_faults("postgresql://h,%2Frun%2Fpostgresql/d", stale)) == 1
    assert len(_faults("postgresql:///d", stale)) == 1


def test_a_folder_of_the_user_that_cannot_be_looked_into_has_no_files(monkeypatch):
    monkeypatch.setenv("HOME", "/" + "x" * 300)
    (told,) = _faults("postgresql://h/d?sslmode=verify-full")
    assert "without sslrootcert" in told


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
