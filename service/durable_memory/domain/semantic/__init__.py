"""Vectors as values: what is embedded, generations, segments, manifests, leases, receipts, fusion. Pure."""
