"""The client for asyncio. `durable_memory_client` exports it; `durable_memory_client.sync` is its blocking twin."""
