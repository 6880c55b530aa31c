"""n-gram models: how a text becomes tokens, and the smoothing formula by hand."""

import re
from collections import Counter
from fractions import Fraction
from hashlib import sha256
from itertools import product
from pydoc_data.topics import topics

import numpy as np
import pytest

from toy_models import NGramModel, read_text, text_pairs
from toy_models.ngram import has_words


@pytest.fixture
def text_file(tmp_path):
    def write(content):
        path = tmp_path / "text.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_characters_are_numbered_by_how_common_they_are_then_by_code_point(text_file):
    text = read_text(text_file("abcab\na"))
    assert text.symbols == ("a", "b", "\n", "c")
    assert text.tokens == (0, 1, 3, 0, 1, 2, 0)
    assert text.vocabulary == 4


def test_words_are_runs_of_letters_and_single_marks(text_file):
    text = read_text(text_file("to be, or not to be\tto  é_1!"), unit="words")
    assert text.symbols == ("to", "be", "!", ",", "not", "or", "é_1")
    assert text.tokens == (0, 1, 3, 5, 4, 0, 1, 0, 6, 2)


def test_the_rarer_symbols_are_folded_into_the_last_class(text_file):
    text = read_text(text_file("aaabbcd"), classes=3)
    assert text.symbols == ("a", "b", "<rarer>")
    assert text.tokens == (0, 0, 0, 1, 1, 2, 2)


@pytest.mark.parametrize("classes", [None, 4, 9])
def test_enough_classes_keep_every_symbol(classes, text_file):
    assert read_text(text_file("aaabbcd"), classes=classes).symbols == ("a", "b", "c", "d")


def test_the_class_of_the_rarer_words_is_no_word_of_the_text(text_file):
    text = read_text(text_file("other other other two two three four"), unit="words", classes=3)
    assert len(set(text.symbols)) == 3


def test_a_file_is_named_and_its_digest_is_of_its_bytes(text_file):
    path = text_file("día\n".encode() * 3)
    text = read_text(path)
    assert text.name == str(path)
    assert text.sha256 == sha256(path.read_bytes()).hexdigest()
    assert read_text(str(path)) == text


@pytest.mark.parametrize("unit", ["characters", "words"])
def test_the_default_text_is_the_help_inside_python(unit):
    content = "\n".join(topics[topic] for topic in sorted(topics))
    text = read_text(unit=unit)
    assert text.name == "pydoc_data.topics"
    assert text.sha256 == sha256(content.encode()).hexdigest()
    symbols = list(content) if unit == "characters" else re.findall(r"\w+|[^\w\s]", content)
    assert [text.symbols[token] for token in text.tokens] == symbols
    counts = Counter(text.tokens)
    assert all(counts[token] >= counts[token + 1] for token in range(text.vocabulary - 1))


def test_a_file_that_is_not_utf8_is_refused(text_file):
    path = text_file(b"ab\xffcd")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: byte 2 is not UTF-8"):
        read_text(path)


@pytest.mark.parametrize(("content", "unit"), [("", "characters"), ("aaaa", "characters"), ("one one  one", "words")])
def test_a_text_of_fewer_than_two_symbols_is_refused(content, unit, text_file):
    with pytest.raises(ValueError, match=f"[01] different {unit}; expected 2 or more"):
        read_text(text_file(content), unit=unit)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("choice", "message"), [({"unit": "lines"}, "unit: 'lines'; expected one of"), ({"classes": 1}, "classes: 1;")]
)
def test_an_unknown_choice_is_refused(choice, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        read_text(**choice)


def test_the_smoothing_formula_by_hand(text_file):
    """Text 0 0 1 0 1. Single tokens: 3 and 2 of 5. After 0: one 0, two 1. After 1: one 0."""
    text = read_text(text_file("aabab"))
    model = NGramModel(text, order=2, smoothing=2.0)
    empty = [Fraction(3 + 1, 5 + 2), Fraction(2 + 1, 5 + 2)]
    after_a = [(1 + 2 * empty[0]) / (3 + 2), (2 + 2 * empty[1]) / (3 + 2)]
    after_b = [(1 + 2 * empty[0]) / (1 + 2), (0 + 2 * empty[1]) / (1 + 2)]
    expected = [[float(weight) for weight in row] for row in (empty, after_a, after_b)]
    np.testing.assert_allclose(model.score((), (0, 1)), expected, rtol=1e-15)
    assert (model.vocabulary, model.kind) == (2, "weights")


def test_a_context_of_two_tokens_gives_way_to_one(text_file):
    """In 0 0 1 0 1 the pair 1 0 is followed by one 1; the pair 1 1 is not there at all."""
    text = read_text(text_file("aabab"))
    model, shorter = NGramModel(text, order=3), NGramModel(text, order=2)
    np.testing.assert_allclose(model.row((1, 0)), (shorter.row((0,)) + np.array([0, 1])) / 2, rtol=1e-15)
    np.testing.assert_allclose(model.row((1, 1)), shorter.row((1,)), rtol=1e-15)


def test_a_single_token_model_has_one_row(text_file):
    model = NGramModel(read_text(text_file("aabab")), order=1, smoothing=1.0)
    np.testing.assert_allclose(model.score((), (1, 0)), [[3.5 / 6, 2.5 / 6]] * 3, rtol=1e-15)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_row_is_a_distribution_with_mass_everywhere(order):
    model = NGramModel(read_text(classes=6), order=order)
    for context in product(range(6), repeat=order - 1):
        row = model.row(context)
        assert row.min() > 0
        assert row.sum() == pytest.approx(1, rel=0, abs=1e-15 * 6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_equal_state_keys_have_equal_rows_now_and_after_any_continuation(order):
    model = NGramModel(read_text(classes=3), order=order)
    first = {}
    for prefix in (prefix for length in range(5) for prefix in product(range(3), repeat=length)):
        like = first.setdefault(model.state_key(prefix), prefix)
        for continuation in product(range(3), repeat=2):
            assert (model.score(prefix, continuation) == model.score(like, continuation)).all()
    assert len(first) == sum(3**length for length in range(order))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"order": 0}, "order: 0; expected 1 or more"),
        ({"order": 2, "smoothing": 0}, "smoothing: 0; expected a number above 0"),
        ({"order": 2, "smoothing": float("nan")}, "smoothing: nan; expected a number above 0"),
    ],
)
def test_a_model_that_cannot_be_is_refused(values, message, text_file):
    with pytest.raises(ValueError, match=f"^{message}$"):
        NGramModel(read_text(text_file("aabab")), **values)


def test_a_text_shorter_than_the_order_is_refused(text_file):
    text = read_text(text_file("aab"))
    assert NGramModel(text, order=2).order == 2
    with pytest.raises(ValueError, match=r"3 tokens; expected at least 4 for order 3$"):
        NGramModel(text, order=3)


def test_a_text_without_words_has_no_pair_of_words(text_file):
    path = text_file("\u6f22\u5b57\u4eee\u540d" * 20)
    assert not has_words(path)
    assert [pair.name for pair in text_pairs(path)] == ["ngram-folded", "ngram-characters"]
