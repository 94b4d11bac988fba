// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/regatta-sh/regatta/test/terminal"
)

func TestExecGivesTheCommandATerminal(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	program, person := terminal.OpenTTY(t, &unix.Winsize{Row: 40, Col: 100})
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
