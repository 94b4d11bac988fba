// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/terminal"
)

// What is printed on a terminal ends with the line of progress gone, and what is
// printed elsewhere is the same as without.
func TestSimulateTellsATerminalOfItsProgress(t *testing.T) {
	const line = "simulate --at 2026-12-24T10:00Z --replicas 4"
	program, person := terminal.OpenTTY(t, nil)
	cmd := policy.New(policies.Builtin)
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(program)
	cmd.SetArgs(strings.Fields(line))
	var told bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&told, person) // ends with an error when the program has closed it
	}()
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	program.Close()
	<-read
	for _, want := range []string{"\rgrowing the fleet: 1 of 4 pods\x1b[K", "\rwave 0 at 2026-12-24T10:00:00Z: ", "of 4 pods updated\x1b[K"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("told %q, want %q in it", told.String(), want)
		}
	}
	if !strings.HasSuffix(told.String(), "\r\x1b[K") {
		t.Errorf("told %q, want the line gone at last", told.String())
	}
	if plain, _ := exactly(t, line); plain != out.String() {
		t.Errorf("printed %q, and without a terminal %q", out.String(), plain)
	}
}
