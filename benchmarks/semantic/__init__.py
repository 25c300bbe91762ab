"""What the measurements of semantic recall share: an embedder that costs nothing, and a process to measure in."""
