"""Each text is told apart by a word and by what it says, and is recognised where it should not be."""

from tests.qualification.traffic.wording import PIECES, SHARED_WORD, digest_of, text_of, word_of

IDS = [f"caller-{number}" for number in range(2_000)]


def test_each_request_has_a_word_and_a_sentence_of_its_own():
    assert len({word_of(one) for one in IDS}) == len(IDS)
    assert len({text_of(one).partition(":")[2] for one in IDS}) > 0.99 * len(IDS)
    assert text_of("a", "canary") == text_of("a", "canary")


def test_a_word_is_one_word_whatever_reads_it():
    assert all(word_of(one).isalpha() and word_of(one).isascii() and word_of(one).islower() for one in IDS)


def test_each_text_has_the_words_by_which_it_is_found_and_recognised():
    for one in IDS[:200]:
        text = text_of(one, "canary")
        assert text.split()[:3] == [word_of(one), "canary", f"{SHARED_WORD}:"]
        assert any(piece in text for piece in PIECES)


def test_a_digest_tells_texts_apart_and_nothing_of_them():
    assert len({digest_of(text_of(one)) for one in IDS}) == len(IDS)
    assert len(digest_of("")) == 16
