"""What every store promises of the records of semantic recall. `promises.py` is the list of all tests."""
