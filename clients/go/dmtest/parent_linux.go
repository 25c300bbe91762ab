package dmtest

import (
	"os/exec"
	"syscall"
)

// endWithParent ends the process when this one ends without having ended it: a test that panicked or ran out of time.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
