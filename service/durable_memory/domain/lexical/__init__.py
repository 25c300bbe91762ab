"""Lexical retrieval: the tokens, the scores and the profiles that name them. Pure."""
