"""`python -m durable_memory` is the command line."""

from durable_memory.cli import main

if __name__ == "__main__":
    main()
