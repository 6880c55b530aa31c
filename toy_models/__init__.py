"""Small models whose laws are known exactly: tables, random logits, n-grams of a real text, and named pairs of them."""

from toy_models.ngram import NGramModel, Text, read_text
from toy_models.pairs import Pair, get_pair, pair_names, text_pairs
from toy_models.random_logits import NearbyModel, RandomLogitModel
from toy_models.tabular import TabularModel

__all__ = [
    "NGramModel",
    "NearbyModel",
    "Pair",
    "RandomLogitModel",
    "TabularModel",
    "Text",
    "get_pair",
    "pair_names",
    "read_text",
    "text_pairs",
]
