// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/policies"
)

// BenchmarkBroadcast measures one decision about a job for a thousand nodes.
func BenchmarkBroadcast(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	const nodes = 1000
	in := placement.BroadcastInput{Job: placement.Job{Namespace: "ops", Name: "upgrade"}, Room: nodes, Counts: placement.Counts{Desired: nodes, Waiting: nodes}}
	for i := range nodes {
		in.Nodes = append(in.Nodes, placement.Node{
			Name: fmt.Sprintf("node-%04d", i), State: placement.Waiting,
			Labels: map[string]string{
				"kubernetes.io/hostname": fmt.Sprintf("node-%04d", i), "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
				"topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3), "topology.kubernetes.io/region": "region",
			},
			Conditions: map[string]string{"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		out, record := engine.Decide(b.Context(), e, placement.BroadcastPoint(), decision.Subject{Kind: "BroadcastJob", Namespace: "ops", Name: "upgrade"}, in)
		if record.Outcome != decision.Decided || len(out.Next(in)) != nodes {
			b.Fatalf("%s %s: %d nodes", record.Outcome, record.Error, len(out.Nodes))
		}
	}
}
