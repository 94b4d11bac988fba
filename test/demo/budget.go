// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// budgeted shows that a budget refuses what would take too many pods away, and
// that a label keeps the CloneSet itself.
func (s *show) budgeted() error {
	title("A budget: one pod may be unavailable, whichever client causes it")
	if err := s.kubectl("apply", "-f", "test/demo/manifests/pub-demo.yaml"); err != nil {
		return err
	}
	if err := s.allows("1"); err != nil {
		return err
	}
	if err := s.kubectl("get", "pub", "pub-demo"); err != nil {
		return err
	}
	out, err := s.quiet("kubectl", "get", "pods", "-l", "app=cs", "-o", "name")
	pods := strings.Fields(out)
	if err != nil || len(pods) < 2 {
		return fmt.Errorf("finding two pods: there are %d: %w", len(pods), err)
	}
	if err := s.kubectl("delete", pods[0], "--wait=false"); err != nil {
		return err
	}
	if err := s.refused("kubectl", "delete", pods[1]); err != nil {
		return err
	}
	if err := s.regatta("why", pods[1], "--all"); err != nil {
		return err
	}
	if err := s.kubectl("label", "cloneset", "cs-demo", "policy.kruise.io/delete-protection=Always"); err != nil {
		return err
	}
	if err := s.refused("kubectl", "delete", "cloneset", "cs-demo"); err != nil {
		return err
	}
	if err := s.kubectl("label", "cloneset", "cs-demo", "policy.kruise.io/delete-protection-"); err != nil {
		return err
	}
	return s.allows("1")
}

// allows waits until the budget allows so many.
func (s *show) allows(n string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := s.quiet("kubectl", "get", "pub", "pub-demo", "-o", "jsonpath={.status.unavailableAllowed}")
		if err == nil && out == n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting for the budget: it allows %q after a minute, want %s", out, n)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// refused shows a command that is to fail.
func (s *show) refused(name string, args ...string) error {
	err := s.run(name, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	if err == nil {
		return fmt.Errorf("running %s: it was not refused", quoted(name, args))
	}
	return err
}
