"""What a fault is: something done to the cluster that it must survive, and that can be undone."""

from __future__ import annotations

import random
from typing import Protocol

from tests.qualification.cluster.cluster import Cluster


class Fault(Protocol):
    """`name` is what reports call it. All randomness is the caller's, so that a seed gives the same faults again."""

    name: str

    def available(self, cluster: Cluster) -> bool:
        """Whether it can be injected as the cluster is now: a standby to promote, a replica left to serve."""

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        """Break something, keep it so for as long as the fault is about, and mend it.

        Return how often it struck: processes ended or stopped, connections cut, chunks lost, late or cut off, changes
        lost. A fault that struck nothing has shown nothing.

        When it returns, everything that it ended runs again; whether the cluster is healthy is for the caller to see
        (`Cluster.wait_healthy`). It marks itself on the cluster's timeline.
        """
