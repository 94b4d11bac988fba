// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOptionsThatWouldBeIgnoredAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		options options
		want    string
	}{
		"a local cluster":                        {options{}, ""},
		"another Kubernetes":                     {options{kubernetes: "1.34"}, ""},
		"another Kubernetes on another cluster":  {options{kubernetes: "1.34", kubeconfig: "k", image: "i:1"}, "--kubernetes needs no --kubeconfig"},
		"nodes of both kinds":                    {options{real: 3, simulated: 6}, ""},
		"another cluster with an image":          {options{kubeconfig: "k", image: "a:b"}, ""},
		"an installation that is there":          {options{kubeconfig: "k", installed: true, endpoint: "https://x"}, ""},
		"another cluster, which has no image":    {options{kubeconfig: "k"}, "--kubeconfig needs --image or --installed"},
		"an image for a local cluster":           {options{image: "a:b"}, "--image needs --kubeconfig"},
		"an installation on nothing":             {options{installed: true}, "--installed needs --kubeconfig"},
		"an endpoint of what is to be installed": {options{kubeconfig: "k", image: "a:b", endpoint: "https://x"}, "--endpoint needs --installed"},
		"nodes of another cluster":               {options{kubeconfig: "k", image: "a:b", real: 3}, "--real needs"},
		"fewer nodes than none":                  {options{simulated: -1}, "--simulated needs a positive number"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.options.validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// What is shown can be typed.
func TestQuoted(t *testing.T) {
	args := []string{"plain", "--type=merge", `{"spec":{"image":"nginx:1.27"}}`, "", "it's", `back\slash`, "a*b;c&d", "jsonpath={.status.x[?(@.type==\"A\")]}"}
	shown := quoted("printf", append([]string{"%s\n"}, args...))
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", shown).Output()
	if err != nil || string(out) != strings.Join(args, "\n")+"\n" {
		t.Errorf("%s prints\n%s%v", shown, out, err)
	}
	if got := quoted("kubectl", []string{"get", "pods", "-l", "app=cs"}); got != "kubectl get pods -l app=cs" {
		t.Errorf("unnecessary quotes: %s", got)
	}
}

func TestCommandsAreThoseOfTheCluster(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"kubectl": 0o755, "helm": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	s := &show{ctx: t.Context(), env: []string{"PATH=/nowhere:" + dir}}
	if got := s.command("kubectl").Path; got != filepath.Join(dir, "kubectl") {
		t.Errorf("kubectl is %s", got)
	}
	if got := s.command("helm").Path; got == filepath.Join(dir, "helm") {
		t.Error("what cannot be run is run")
	}
	t.Setenv("PATH", dir)
	if _, err := toolsOnPath(); err == nil || !strings.Contains(err.Error(), "finding helm: it has to be in "+dir) {
		t.Errorf("got %v", err)
	}
}
