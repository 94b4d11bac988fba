// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestThisProcessIsMeasured(t *testing.T) {
	pid := os.Getpid()
	before, err := CPUSeconds(pid)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0.0; n < before+0.05; { // work until the clock shows it
		if n, err = CPUSeconds(pid); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := BusySeconds(); err != nil || all < before {
		t.Errorf("the machine has worked for %v s, this process for %v, %v", all, before, err)
	}
	if n, err := ResidentBytes(pid); err != nil || n < 1<<20 {
		t.Errorf("%d bytes are resident, %v", n, err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := Named(filepath.Base(exe)); err != nil || !slices.Contains(found, pid) {
		t.Errorf("this process is not among %v, %v", found, err)
	}
	if args, err := Arguments(pid); err != nil || !slices.Equal(args, os.Args) {
		t.Errorf("got arguments %q, %v", args, err)
	}
}

func TestAProcessThatIsGoneIsAnError(t *testing.T) {
	if _, err := CPUSeconds(1 << 30); !Gone(err) {
		t.Errorf("got %v", err)
	}
}
