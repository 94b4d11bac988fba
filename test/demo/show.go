// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/test/install"
)

// show types commands and shows what they print.
type show struct {
	ctx      context.Context
	root     string
	env      []string
	endpoint string // of a manager outside of the cluster
}

// play is the story: create, update in place, hold by a policy, ask why, release the
// hold, and protect.
func (s *show) play() error {
	manifest := "test/demo/manifests/cs-demo.yaml"
	policy := "policies/examples/one-zone-at-a-time/bundle.yaml"
	steps := []func() error{
		s.clean,
		func() error { title("The manager runs"); return s.kubectl("get", "pods", "-n", "kruise-system") },
		func() error {
			title("A CloneSet, as written for OpenKruise")
			return s.kubectl("apply", "-f", manifest)
		},
		func() error { return s.available("cs-demo") },
		func() error { return s.kubectl("get", "cloneset", "cs-demo") },
		func() error { return s.pods() },
		func() error { title("A new image, in place: same pods, same addresses"); return s.image("nginx:1.27") },
		func() error { return s.regatta("rollout", "watch", "clone/cs-demo", "--plain") },
		func() error { return s.available("cs-demo") },
		func() error { return s.pods() },
		func() error { title("A policy: one zone at a time"); return s.kubectl("apply", "-f", policy) },
		func() error {
			return s.kubectl("wait", "--for=condition=Ready", "clusterpolicybundle/one-zone-at-a-time", "--timeout=60s")
		},
		func() error { return s.kubectl("get", "clusterpolicybundles") },
		func() error { return s.image("nginx:1.28") },
		func() error { return s.held() },
		func() error { title("Every pod got there, zone by zone"); return s.available("cs-demo") },
		func() error { return s.pods() },
		func() error {
			return s.kubectl("get", "events", "--field-selector", "involvedObject.name=cs-demo,involvedObject.kind=CloneSet", "-o", "custom-columns=REASON:.reason,MESSAGE:.message")
		},
		s.budgeted,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// clean takes away what an earlier show left.
func (s *show) clean() error {
	if _, err := s.quiet("kubectl", "delete", "clusterpolicybundle", "one-zone-at-a-time", "--ignore-not-found"); err != nil {
		return fmt.Errorf("taking away the policy of an earlier demo: %w", err)
	}
	if _, err := s.quiet("kubectl", "delete", "pub", "pub-demo", "--ignore-not-found"); err != nil {
		return fmt.Errorf("taking away the budget of an earlier demo: %w", err)
	}
	if _, err := s.quiet("kubectl", "delete", "cloneset", "cs-demo", "--ignore-not-found"); err != nil {
		return fmt.Errorf("taking away the CloneSet of an earlier demo: %w", err)
	}
	if _, err := s.quiet("kubectl", "wait", "--for=delete", "pod", "-l", "app=cs", "--timeout=60s"); err != nil {
		return fmt.Errorf("waiting for the pods of an earlier demo to go: %w", err)
	}
	return nil
}

func (s *show) image(image string) error {
	// A merge patch would replace the list of containers, ports and all, and
	// that is no change that can be made in place.
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	return s.kubectl("patch", "cloneset", "cs-demo", "--type=json", "-p", patch)
}

func (s *show) pods() error {
	return s.kubectl("get", "pods", "-l", "app=cs", "-o", "wide", "-L", "topology.kubernetes.io/zone", "-L", "controller-revision-hash")
}

// held waits until the policy holds a pod, and asks why.
func (s *show) held() error {
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := s.quiet("kubectl", "get", "cloneset", "cs-demo", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].status}`)
		if err == nil && strings.Contains(out, "True") {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting for the policy to hold a pod: it did not within a minute")
		}
		time.Sleep(200 * time.Millisecond)
	}
	// By node, and so by zone: pods carry a label of their zone only since Kubernetes 1.35.
	out, err := s.quiet("kubectl", "get", "pods", "-l", "app=cs", "--sort-by=.spec.nodeName", "-o", "name")
	if err != nil {
		return fmt.Errorf("finding a held pod: %w", err)
	}
	names := strings.Fields(out)
	if len(names) == 0 {
		return fmt.Errorf("finding a held pod: there is none")
	}
	if err := s.regatta("why", names[len(names)-1]); err != nil {
		return err
	}
	return s.regatta("why", "clone/cs-demo")
}

// available waits until all pods are updated and available.
func (s *show) available(name string) error {
	deadline := time.Now().Add(5 * time.Minute)
	for {
		out, err := s.quiet("kubectl", "get", "cloneset", name, "-o",
			"jsonpath={.metadata.generation} {.status.observedGeneration} {.spec.replicas} {.status.updatedAvailableReplicas} {.status.replicas}")
		f := strings.Fields(out)
		if err == nil && len(f) == 5 && f[0] == f[1] && f[2] == f[3] && f[2] == f[4] {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting for CloneSet %s: generation, observed, replicas, updated and available, total are %q after 5 minutes", name, out)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (s *show) kubectl(args ...string) error { return s.run("kubectl", args...) }

func (s *show) regatta(args ...string) error {
	if s.endpoint != "" {
		args = append(args, "--endpoint", s.endpoint, "--insecure-skip-tls-verify")
	}
	return s.run("regatta", args...)
}

// run shows a command as it would be typed, and what it prints.
func (s *show) run(name string, args ...string) error {
	fmt.Printf("\n$ %s\n", quoted(name, args))
	command := s.command(name, args...)
	command.Stdout, command.Stderr = os.Stdout, os.Stdout
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w", quoted(name, args), err)
	}
	return nil
}

// quiet runs a command and returns what it prints. An error has what it printed to its standard error.
func (s *show) quiet(name string, args ...string) (string, error) {
	out, err := s.command(name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

func (s *show) command(name string, args ...string) *exec.Cmd {
	path := name
	for _, v := range s.env { // the PATH of the cluster, not of this process
		if dirs, ok := strings.CutPrefix(v, "PATH="); ok {
			for _, dir := range filepath.SplitList(dirs) {
				if p := filepath.Join(dir, name); executable(p) {
					path = p
					break
				}
			}
		}
	}
	command := exec.CommandContext(s.ctx, path, args...)
	command.Env, command.Dir = s.env, s.root
	return command
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

func quoted(name string, args []string) string {
	parts := []string{name}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \n{}\"$?()[]|'\\*;&<>`") {
			a = install.Word(a)
		}
		parts = append(parts, a)
	}
	return strings.Join(parts, " ")
}

func title(text string) { fmt.Printf("\n=== %s\n", text) }

// finish says how to go on.
func (s *show) finish(o options, i install.Installed, took time.Duration) {
	endpoint := ""
	if i.Endpoint != "" {
		endpoint = " --endpoint " + i.Endpoint + " --insecure-skip-tls-verify"
	}
	title(fmt.Sprintf("Done in %s; the cluster stays up. Three things to try", took.Round(time.Second)))
	fmt.Printf(`
export KUBECONFIG=%s PATH=%s:%s:$PATH

  1. Freeze all changes, and ask why nothing moves:
       kubectl apply -f policies/examples/change-freeze/bundle.yaml
       regatta set image clone/cs-demo nginx=nginx:1.29
       regatta why clone/cs-demo%s
  2. Watch a rollout, in the terminal or in a browser:
       regatta rollout watch clone/cs-demo%s
       regatta dashboard -A%s
  3. Change a policy and test it:
       regatta policy test policies/examples/one-zone-at-a-time --coverage

`, i.Kubeconfig, i.Tools, filepath.Join(s.root, "bin"), endpoint, endpoint, endpoint)
	if o.kubeconfig == "" {
		fmt.Println("make demo-down removes the cluster.")
	}
}

// toolsOnPath is the folder that kubectl and helm are in.
func toolsOnPath() (string, error) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return "", fmt.Errorf("finding kubectl: %w", err)
	}
	if helm, err := exec.LookPath("helm"); err != nil || filepath.Dir(helm) != filepath.Dir(kubectl) {
		return "", fmt.Errorf("finding helm: it has to be in %s, beside kubectl", filepath.Dir(kubectl))
	}
	return filepath.Dir(kubectl), nil
}
