"""Durable Memory: the memory of record for AI agents, served over gRPC."""
