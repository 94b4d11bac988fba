// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

func TestListEndedSaysWhy(t *testing.T) {
	dir := t.TempDir()
	spec := func(name, log string) process.Spec {
		s := process.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", "sleep 60 & wait"}, Log: filepath.Join(dir, "logs", name+".log")}
		if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Log, []byte(log), 0o644); err != nil {
			t.Fatal(err)
		}
		return s
	}
	runs := spec("runs", "F1129 10:00:00.000000 1 main.go:1] of a process before\n")
	failed := spec("failed", "I1129 10:00:00.000000 1 main.go:1] started\nF1129 10:00:01.000000 1 main.go:2] no roles\ngoroutine 1 [running]:\n")
	killed := spec("killed", "I1129 10:00:00.000000 1 main.go:1] started\n")
	if _, err := process.Start(dir, runs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.KillAll(context.WithoutCancel(t.Context()), dir); err != nil {
			t.Error(err)
		}
	})
	c := &Cluster{State: &state.State{Dir: dir, Processes: []process.Spec{runs, failed, killed}}}
	got, err := c.ListEnded()
	if err != nil {
		t.Fatal(err)
	}
	want := []EndedProcess{
		{"failed", "F1129 10:00:01.000000 1 main.go:2] no roles"},
		{"killed", "the end of " + killed.Log + ":\nI1129 10:00:00.000000 1 main.go:1] started"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
