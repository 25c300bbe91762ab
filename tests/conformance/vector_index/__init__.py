"""What every vector index promises: `promises.py` is the list of all tests."""
