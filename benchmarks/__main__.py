"""`make bench`: what can be measured without data of others."""

from benchmarks import recall_latency, view_memory

if __name__ == "__main__":
    view_memory.main()
    recall_latency.main()
