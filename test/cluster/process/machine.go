// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// NetNSDir is where iproute2 keeps named network namespaces.
const NetNSDir = "/var/run/netns"

// startMachine starts command in new process and mount namespaces and in the
// named network namespace. A network namespace belongs to a thread and is
// inherited by what the thread forks, hence the locked thread.
//
// `ip netns exec` would do this too, but it remounts /sys and hides the cgroups.
func startMachine(command *exec.Cmd, name string) (err error) {
	target, err := os.Open(filepath.Join(NetNSDir, name))
	if err != nil {
		return fmt.Errorf("opening the network namespace: %w", err)
	}
	defer target.Close()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("opening our network namespace: %w", err)
	}
	defer home.Close()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering the network namespace: %w", err)
	}
	command.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	startErr := command.Start()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		// The thread stays locked: Go ends it with its goroutine rather than
		// letting other code run in the wrong network.
		return errors.Join(startErr, fmt.Errorf("leaving the network namespace: %w", err))
	}
	runtime.UnlockOSThread()
	return startErr
}
