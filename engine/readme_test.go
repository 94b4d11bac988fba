// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheProgramInTheReadme runs exactly the text that is printed there.
func TestTheProgramInTheReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string) string {
		_, after, ok := strings.Cut(string(text), "```"+kind+"\n")
		body, _, closed := strings.Cut(after, "```")
		if !ok || !closed {
			t.Fatalf("README.md has no block of %s", kind)
		}
		return body
	}
	main := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(main, []byte(block("go")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", main).CombinedOutput()
	if err != nil || string(out) != block("text") {
		t.Errorf("it printed %s, %v; want %s", out, err, block("text"))
	}
}
