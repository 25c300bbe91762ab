"""Protocols that the use cases need from the outside, with the contract in their docstrings."""
