"""The text forms of manifests come back as they were, and damage is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.manifest_codec import descriptor_text, parse_descriptor, parse_segments, segments_text
from durable_memory.adapters.redis.manifest_fields import manifest_fields, parse_manifest
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import Descriptor, Manifest, SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
COUNT = st.integers(min_value=0, max_value=2**53 - 1)
DESCRIPTORS = st.builds(
    Descriptor, dimension=st.integers(1, 65_535), metric=TEXT, normalization=TEXT, width=st.sampled_from(FloatWidth)
)
ENTRIES = st.builds(
    lambda entry, rows: entry.without(row for row in rows if row < entry.record_count),
    st.builds(SegmentEntry, segment_id=TEXT, checksum=TEXT, nbytes=COUNT, record_count=st.integers(0, 5_000)),
    st.sets(st.integers(0, 5_000), max_size=20),
)
MANIFESTS = st.builds(
    Manifest,
    descriptor=DESCRIPTORS,
    index_revision=COUNT,
    history_digest=TEXT,
    fence=COUNT,
    nonce=TEXT,
    source_history_id=TEXT,
    source_revision=COUNT,
    segments=st.lists(ENTRIES, max_size=5).map(tuple),
)


@given(MANIFESTS)
def test_a_manifest_comes_back_from_the_fields_of_its_hash(manifest):
    fields = {name.encode(): str(value).encode() for name, value in manifest_fields(manifest).items()}
    assert parse_manifest({b"highest_fence": b"7", **fields}) == manifest
    assert parse_segments(segments_text(manifest.segments)) == manifest.segments
    assert parse_descriptor(descriptor_text(manifest.descriptor)) == manifest.descriptor


@given(DESCRIPTORS, DESCRIPTORS)
def test_descriptors_have_equal_texts_exactly_when_they_are_equal(one, other):
    assert (descriptor_text(one) == descriptor_text(other)) == (one == other)


def test_fields_without_a_revision_are_no_manifest():
    assert parse_manifest({}) is None
    assert parse_manifest({b"highest_fence": b"7"}) is None


@pytest.mark.parametrize("text", ["", "{", "7", "[7]", "[[]]", "null", '[["a", "b"]]', '[["a", "b", 1, 1, "zz"]]'])
def test_damage_is_told(text):
    for parse in (parse_segments, parse_descriptor):
        with pytest.raises(DomainError) as damage:
            parse(text)
        assert damage.value.reason is Reason.DATA_CORRUPTED
        assert damage.value.metadata == {"what": "manifest"}


@pytest.mark.parametrize("removed", ["00", "02", "0100", "0001"])
def test_removed_records_that_a_segment_does_not_have_are_damage(removed):
    with pytest.raises(DomainError) as damage:
        parse_segments(f'[["a", "b", 1, 1, "{removed}"]]')
    assert damage.value.reason is Reason.DATA_CORRUPTED
