// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	for image, want := range map[string]string{
		"openkruise/kruise-manager:1.0.0":   "openkruise/kruise-manager 1.0.0",
		"localhost:5000/kruise-manager:dev": "localhost:5000/kruise-manager dev",
		"example.com/kruise@sha256:abcdef":  "example.com/kruise sha256:abcdef",
		"localhost:5000/kruise-manager":     "",
		"kruise-manager":                    "",
		"kruise-manager:":                   "",
		":dev":                              "",
	} {
		repository, tag, err := reference(image)
		if got := strings.TrimSpace(repository + " " + tag); got != want || (err != nil) != (want == "") {
			t.Errorf("%s is %q, want %q; %v", image, got, want, err)
		}
	}
}

func TestWordsOfAShell(t *testing.T) {
	for _, text := range []string{"/tmp/plain", "/tmp/with a space", "it's $HOME `id`", ""} {
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf %s "+Word(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is %q for a shell: %v", text, out, err)
		}
	}
}

func TestTagsFollowTheProgram(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "kruise-manager")
	tags := map[string]bool{}
	for _, text := range []string{"one", "two", "one"} {
		if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tag, err := tagOf(root, program)
		if err != nil || strings.ContainsAny(tag, " \"+") {
			t.Fatalf("%q %v", tag, err)
		}
		tags[tag] = true
	}
	if len(tags) != 2 {
		t.Errorf("two programs have %d tags", len(tags))
	}
	if _, err := tagOf(t.TempDir(), program); err == nil {
		t.Error("there is a tag without a chart")
	}
}

func TestOurToolsComeFirst(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	env := Installed{Kubeconfig: "/k", Tools: "/tools", Registry: "127.0.0.1:5"}.Env(map[string]string{"regatta": "/bin/dir/regatta"})
	last := map[string]string{} // the last of a name counts
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		last[name] = value
	}
	if last["PATH"] != "/tools:/bin/dir:/usr/bin" || last["KUBECONFIG"] != "/k" || last["REGISTRY"] != "127.0.0.1:5" {
		t.Errorf("PATH is %s, KUBECONFIG %s, REGISTRY %s", last["PATH"], last["KUBECONFIG"], last["REGISTRY"])
	}
}
