"""Views of hot namespaces: what recall reads instead of the store."""
