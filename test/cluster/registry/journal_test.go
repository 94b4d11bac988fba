// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"os"
	"path/filepath"
	"testing"
)

func TestJournalForgetsWhatWasHalfWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "manifests.jsonl")
	read := func() []string {
		t.Helper()
		var seen []string
		opened, err := openJournal(path, func(one entry) error {
			seen = append(seen, one.Reference)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.append(entry{Reference: "more"}); err != nil {
			t.Fatal(err)
		}
		if err := opened.close(); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	if seen := read(); len(seen) != 0 {
		t.Errorf("a new journal holds %v", seen)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"method": "PUT", "refer`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if seen := read(); len(seen) != 1 {
		t.Errorf("after a crash it holds %v", seen)
	}
	if seen := read(); len(seen) != 2 {
		t.Errorf("what is written after a crash is lost: %v", seen)
	}
}
