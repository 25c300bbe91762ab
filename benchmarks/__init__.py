"""Reproducible measurements through the public API: ratios between things measured in one run."""
