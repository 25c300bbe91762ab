"""What a test run starts is gone also when the run itself is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.processes.child import is_alive
from tests.processes.polling import wait_until

_ROOT = Path(__file__).resolve().parents[2]
_OWNER = """
import sys, time
from pathlib import Path
from tests.processes.child import Child

def start():
    argv = [sys.executable, "-c", "import subprocess, sys; subprocess.run(['sleep', '600'])"]
    return Child(argv, log=Path(sys.argv[1]), env={"PATH": sys.argv[2]})

start().kill9()
print(start().pid, flush=True)
time.sleep(600)
"""


def test_children_and_theirs_end_when_their_owner_is_killed(tmp_path: Path):
    argv = [sys.executable, "-c", _OWNER, str(tmp_path / "log"), os.environ["PATH"]]
    with subprocess.Popen(argv, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = psutil.Process(int(owner.stdout.readline()))
        wait_until(child.children, what="the child has a child")
        family = [child, *child.children()]
        assert all(map(is_alive, family))
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, family)), what="nothing of it is left")
