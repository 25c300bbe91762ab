"""The same cases for the clients of all languages, against the real server and against one that answers by script."""
