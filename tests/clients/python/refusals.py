"""What calls are refused with in tests of several subjects."""

import grpc

from tests.clients.python.fake_service import Refusal

LOST = Refusal(grpc.StatusCode.UNAVAILABLE)
"""Without a reason: the connection is gone, or nobody listens."""

CUT = Refusal(grpc.StatusCode.CANCELLED)
"""How a server that stops ends a call that has reached it and that it has not begun, and a stream once its time to
drain is over.
"""

NOT_SERVING = Refusal(grpc.StatusCode.UNAVAILABLE, "NOT_SERVING", {"state": "draining"})
CONFLICT = Refusal(grpc.StatusCode.ABORTED, "REVISION_CONFLICT", {"expected": "3", "actual": "4"})
