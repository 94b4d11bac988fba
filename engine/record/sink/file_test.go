// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/record/sink"
)

func TestFilesAreRotated(t *testing.T) {
	for name, tc := range map[string]struct {
		before string
		max    int64
		keep   int
		lines  string // with blanks between them
		want   map[string]string
	}{
		"not while there is room":            {"", 9, 2, "aa bb cc", map[string]string{"": "aa\nbb\ncc\n"}},
		"not without a bound":                {"", 0, 2, "aa bb cc", map[string]string{"": "aa\nbb\ncc\n"}},
		"when the next line has none":        {"", 8, 2, "aa bb cc", map[string]string{"": "cc\n", ".1": "aa\nbb\n"}},
		"and the oldest goes":                {"", 3, 2, "aa bb cc dd", map[string]string{"": "dd\n", ".1": "cc\n", ".2": "bb\n"}},
		"and all go where none are kept":     {"", 3, 0, "aa bb cc", map[string]string{"": "cc\n"}},
		"a line that is too long is alone":   {"", 4, 5, "aa bbbbbbbb cc", map[string]string{"": "cc\n", ".1": "bbbbbbbb\n", ".2": "aa\n"}},
		"what is there already counts":       {"xx\nyy\n", 8, 1, "aa", map[string]string{"": "aa\n", ".1": "xx\nyy\n"}},
		"what is there already stays":        {"xx\n", 20, 1, "aa", map[string]string{"": "xx\naa\n"}},
		"a part of a line is no longer one":  {"xx\ny", 20, 1, "aa", map[string]string{"": "xx\ny\naa\n"}},
		"nothing happens when there is none": {"xx\n", 3, 1, "", map[string]string{"": "xx\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "decisions.log")
			if tc.before != "" {
				if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := sink.OpenFile(path, tc.max, tc.keep)
			if err != nil {
				t.Fatal(err)
			}
			var lines [][]byte
			for _, l := range strings.Fields(tc.lines) {
				lines = append(lines, []byte(l+"\n"))
			}
			if err := f.Write(t.Context(), lines); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != len(tc.want) {
				t.Errorf("there are %v, %v", files, err)
			}
			for suffix, want := range tc.want {
				if got, err := os.ReadFile(path + suffix); err != nil || string(got) != want {
					t.Errorf("%s has %q, %v", suffix, got, err)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

func TestAFileThatCannotBeOpened(t *testing.T) {
	if _, err := sink.OpenFile(filepath.Join(t.TempDir(), "no", "decisions.log"), 0, 0); err == nil || !strings.Contains(err.Error(), "opening the log of decisions") {
		t.Errorf("%v", err)
	}
}

func TestAFileThatCannotBeRotatedComesBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "decisions.log")
	f, err := sink.OpenFile(path, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.MkdirAll(path+".1/x", 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), [][]byte{[]byte("aa\n"), []byte("bb\n")}); err == nil {
		t.Error("it was rotated into a directory")
	}
	if err := os.RemoveAll(path + ".1"); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), [][]byte{[]byte("cc\n")}); err != nil {
		t.Fatal(err)
	}
	old, _ := os.ReadFile(path + ".1")
	now, _ := os.ReadFile(path)
	if string(old)+string(now) != "aa\ncc\n" {
		t.Errorf("there are %q and %q", old, now)
	}
}
