"""What goes to the provider is told by whose text it is."""

from tests.qualification.scenarios.indexed_place import passages
from tests.qualification.traffic.wording import text_of, word_of

OWN = [word_of(f"own-{number}").encode() for number in range(3)]


def body(prefix: str, *request_ids: str) -> bytes:
    return ", ".join(f'"{prefix}: {text_of(request_id)}"' for request_id in request_ids).encode()


def test_texts_of_the_place_are_counted_and_nobody_elses():
    assert passages(body("passage", "own-0", "other-0", "own-2"), OWN) == 2
    assert passages(body("passage", "other-0"), OWN) == 0


def test_a_question_is_no_text_of_the_place():
    assert passages(body("query", "own-0"), OWN) == 0
