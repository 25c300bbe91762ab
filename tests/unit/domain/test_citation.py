"""Citations: one text, one citation, one string."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.domain.citation import Citation, parse_citation
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeStatus
from tests.conformance.samples import create, revise
from tests.unit.domain.test_names_and_texts import NAMES

DIGEST = "0123456789abcdef" * 4
REVISIONS = st.integers(1, 2**53 - 1)


@given(st.builds(Citation, REVISIONS, NAMES, REVISIONS, st.just(DIGEST)))
def test_every_citation_survives_as_its_string(citation):
    text = str(citation)
    assert text.isascii()
    assert not set(text) & set(" \t\n\"'()[]<>")
    assert parse_citation("f", text) == citation


@given(
    st.builds(Citation, REVISIONS, NAMES, REVISIONS, st.just(DIGEST)),
    st.builds(Citation, REVISIONS, NAMES, REVISIONS, st.just(DIGEST)),
)
def test_two_citations_never_share_a_string(first, second):
    assert (str(first) == str(second)) == (first == second)


def test_what_separates_the_parts_is_encoded_inside_a_node_id():
    text = str(Citation(7, "a:b@c#d%é", 2, DIGEST))
    assert text == f"dm1:7:a%3Ab%40c%23d%25%C3%A9@2#{DIGEST}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dm1",
        f"dm2:1:n@1#{DIGEST}",
        f"dm1:01:n@1#{DIGEST}",
        f"dm1:1:n@0#{DIGEST}",
        f"dm1:1:n@1#{DIGEST[:-1]}",
        f"dm1:1:n@1#{DIGEST.upper()}",
        f"dm1:1:@1#{DIGEST}",
        f"dm1:1:%6e@1#{DIGEST}",
        f"dm1:1:%c3%a9@1#{DIGEST}",
        f"dm1:1:é@1#{DIGEST}",
        f"dm1:1:%FF@1#{DIGEST}",
        f"dm1:1:%00@1#{DIGEST}",
        f"dm1:1:n@1#{DIGEST}\n",
        f" dm1:1:n@1#{DIGEST}",
        f"dm1:１:n@1#{DIGEST}",
        f"dm1:10000000000000000000:n@1#{DIGEST}",
        f"dm1:9007199254740992:n@1#{DIGEST}",
        f"dm1:1:n@9007199254740992#{DIGEST}",
    ],
)
def test_anything_but_a_canonical_citation_is_refused(text):
    with pytest.raises(DomainError) as refusal:
        parse_citation("citation", text)
    assert refusal.value.reason is Reason.INVALID_FIELD
    assert refusal.value.metadata["field"].startswith("citation")


def test_a_citation_names_its_text_whatever_else_changes(stage):
    stage.apply(create("n", "one", active=True))
    citation = Citation.of(stage["n"])
    assert citation.names(stage["n"])
    assert citation.names(replace(stage["n"], status=NodeStatus.ARCHIVED, valid_to=9))
    old = stage["n"]
    stage.apply(revise("n", 1, "two"))
    assert not citation.names(stage["n"])
    assert Citation.of(old) == citation


def test_a_citation_may_leave_out_its_namespace_revision_but_not_have_a_wrong_one(stage):
    stage.apply(create("n", "one", active=True))
    citation = Citation.of(stage["n"])
    assert replace(citation, namespace_revision=0).names(stage["n"])
    assert not replace(citation, namespace_revision=2).names(stage["n"])
