// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// openTerminal opens a terminal of 100 columns and 40 lines: what a program has, and what a person types and reads.
func openTerminal(t *testing.T) (program, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return program, person
}

func TestExecGivesTheCommandATerminal(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	program, person := openTerminal(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	cmd := NewExecCommand()
	cmd.SetIn(program)
	cmd.SetOut(program)
	s.wants(t, cmd, "clone/web -c main -it -- sh", typed{Streams: []string{"web-b/exec?command=sh&container=main&stdin=true&stdout=true&tty=true"}})
	printed := make([]byte, 100)
	n, err := person.Read(printed)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(string(printed[:n]), "\r", ""); got != "ran sh on 100x40\n" {
		t.Errorf("the terminal shows %q", got)
	}
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the terminal is not as it was: (-before +after)\n%s", diff)
	}
}
