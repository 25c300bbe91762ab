"""Semantic recall: keeping the vector index right, and searching it."""
