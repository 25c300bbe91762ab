"""Implementations of the ports, one package per technology."""
