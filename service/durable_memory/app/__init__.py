"""Use cases: what a caller can do, in terms of the domain and the ports."""
