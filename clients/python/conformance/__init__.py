"""Runs the cases of clients/conformance with the Python client."""
