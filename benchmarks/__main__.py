"""`make bench`: what can be measured without data of others, in two minutes.

`benchmarks.semantic_index` and `benchmarks.hybrid_latency` need a redis-server, and some minutes each: run them alone.
"""

from benchmarks import recall_latency, view_memory

if __name__ == "__main__":
    view_memory.main()
    recall_latency.main()
