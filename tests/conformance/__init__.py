"""What every store promises. `promises.py` is the list of all tests; `backends.py` says which stores run them."""
