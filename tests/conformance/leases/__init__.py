"""What every lease store promises: `promises.py` is the list of all tests."""
