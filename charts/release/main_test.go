// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// run runs the command with arguments, and returns its error.
func run(t *testing.T, args ...string) error {
	t.Helper()
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

// What is wrong is said before anything is built.
func TestAReleaseThatCannotBeMadeSaysWhy(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	source, folder := t.TempDir(), filepath.Join(t.TempDir(), "dist")
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", source, "-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, output)
		}
	}
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(source, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(want string, args ...string) {
		t.Helper()
		err := run(t, append([]string{"release", "--source", source, "--helm", "none"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%v: the folder was made", args)
		}
	}
	git("init", "-q")
	write("charts/kruise/CHANGELOG.md", "## Unreleased\n\nMuch.\n")
	write("charts/kruise/Chart.yaml", "name: kruise\nversion: 0.1.0\nappVersion: 0.1.0\n")
	git("add", ".")
	git("commit", "-q", "-m", "a")
	refused("--version: the version is missing", "--folder", folder)
	refused(`--version: the version is "0.2.0"`, "--folder", folder, "--version", "0.2.0")
	refused("--platforms: ", "--folder", folder, "--version", "v0.2.0", "--platforms", "windows/amd64")
	refused("--folder: the folder "+full+" is not empty", "--folder", full, "--version", "v0.2.0")
	refused("has no tag v0.2.0", "--folder", folder, "--version", "v0.2.0", "--push")
	refused("has no section", "--folder", folder, "--version", "v0.2.0")
	write("charts/kruise/CHANGELOG.md", "## v0.2.0\n\nMuch.\n")
	refused("differ from their commit", "--folder", folder, "--version", "v0.2.0")
	git("commit", "-q", "-a", "-m", "b")
	refused("Chart.yaml: version is 0.1.0", "--folder", folder, "--version", "v0.2.0")
	write("charts/kruise/Chart.yaml", "name: kruise\nversion: 0.2.0\nappVersion: 0.2.0\n")
	git("commit", "-q", "-a", "-m", "c")
	git("tag", "v0.2.0")
	refused(`--registry: the registry is "https://localhost:5000"`, "--folder", folder, "--version", "v0.2.0", "--push", "--registry", "https://localhost:5000")
	closed := httptest.NewServer(nil)
	closed.Close()
	host := strings.TrimPrefix(closed.URL, "http://")
	refused("--registry: asking to push to "+host+"/regatta-sh/regatta", "--folder", folder, "--version", "v0.2.0", "--push", "--registry", host)
	refused("building ./controllers/cmd/manager", "--folder", folder, "--version", "v0.2.0", "--platforms", "linux/amd64")
}

// A job that may write packages and releases runs nothing that a third party can change behind a tag.
func TestWorkflows(t *testing.T) {
	const root = "../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("there are %v: %v", files, err)
	}
	type permissions map[string]string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Permissions *permissions
			Jobs        map[string]struct {
				Permissions permissions
				Steps       []struct{ Uses, Run string }
			}
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if workflow.Permissions == nil {
			t.Errorf("%s has the permissions that the repository gives", file)
			continue
		}
		for name, job := range workflow.Jobs {
			writes := strings.Contains(strings.Join(values(*workflow.Permissions), " ")+strings.Join(values(job.Permissions), " "), "write")
			for _, step := range job.Steps {
				if step.Uses != "" && writes && !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(step.Uses) {
					t.Errorf("%s: %s may write, and runs %s, which is not pinned by its commit", file, name, step.Uses)
				}
				for _, target := range regexp.MustCompile(`(?m)\bmake ([a-z-]+)`).FindAllStringSubmatch(step.Run, -1) {
					if !strings.Contains(string(makefile), "\n"+target[1]+":") {
						t.Errorf("%s: there is no make %s", file, target[1])
					}
				}
			}
		}
	}
}

func values(of map[string]string) []string {
	var out []string
	for _, value := range of {
		out = append(out, value)
	}
	return out
}
