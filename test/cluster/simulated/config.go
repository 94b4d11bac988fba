// SPDX-License-Identifier: Apache-2.0

// Package simulated gives a cluster nodes that do not exist: KWOK answers for
// their kubelets.
package simulated

import (
	_ "embed"
	"fmt"
	"os"
	"strings"

	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

//go:embed stages.yaml
var stages string

//go:embed status.tmpl
var statusTemplate string

// Kwok is the name of the process.
const Kwok = "kwok"

// NodeLabel tells simulated nodes from real ones; see KindSimulated, KindReal.
const NodeLabel = "regatta.sh/node"

// Values of NodeLabel.
const (
	KindSimulated = "simulated"
	KindReal      = "real"
)

// configuration returns KWOK's configuration with its stages.
func configuration(s *state.State) string {
	return fmt.Sprintf(`apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
metadata: {name: %s}
options:
  cidr: %s
  manageNodesWithLabelSelector: %s=%s
  nodeLeaseDurationSeconds: 40
  podPlayStageParallelism: %d
  nodePlayStageParallelism: %d
  nodeLeaseParallelism: %d
  podsOnNodeSyncParallelism: 4
  enableCRDs: []
---
%s`, s.Name, s.Plan.SimulatedPods(), NodeLabel, KindSimulated, atOnce(s, 16, 16), atOnce(s, 4, 25), atOnce(s, 4, 25), renderStages())
}

// atOnce is how many requests KWOK has under way, one for so many nodes, since as many
// kubelets do not wait for each other: a thousand leases renewed four at a time would
// lapse on a busy machine.
func atOnce(s *state.State, least, nodes int) int { return max(least, s.Simulated/nodes) }

// renderStages puts the status template where the stages ask for it, indented
// as the YAML block that contains it.
func renderStages() string {
	const mark = "      @STATUS@"
	lines := strings.Split(strings.TrimSpace(statusTemplate), "\n")
	return strings.ReplaceAll(stages, mark, "      "+strings.Join(lines, "\n      "))
}

// Process writes KWOK's configuration and returns how to run it.
func Process(s *state.State, programs map[string]string) (process.Spec, error) {
	path := s.Path("kwok.yaml")
	if err := os.WriteFile(path, []byte(configuration(s)), 0o600); err != nil {
		return process.Spec{}, fmt.Errorf("writing the configuration of KWOK: %w", err)
	}
	return process.Spec{
		Name: Kwok, Path: programs[Kwok], Log: s.Log(Kwok),
		Args: []string{"--kubeconfig=" + s.Users[Kwok], "--config=" + path},
	}, nil
}
