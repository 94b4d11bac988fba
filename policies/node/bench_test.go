// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/policies"
)

// BenchmarkRestarts measures node/restarts as the manager asks it.
func BenchmarkRestarts(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	for _, containers := range []int{1, 10} {
		b.Run(fmt.Sprint(containers), func(b *testing.B) {
			in := points.RestartsInput{Request: points.Request{Name: "r", Namespace: "shop"}, Pod: points.Pod{Name: "web-1"}, Budgets: []points.Budget{{Name: "web"}}}
			for i := range containers {
				in.Containers = append(in.Containers, points.Container{Name: fmt.Sprintf("c%d", i), Phase: points.Pending, Found: true})
			}
			b.ReportAllocs()
			for b.Loop() {
				out, _ := engine.Decide(b.Context(), e, points.RestartsPoint(), decision.Subject{Namespace: "shop", Name: "r"}, in)
				if len(out.Restart) != containers {
					b.Fatal(out)
				}
			}
		})
	}
}

// BenchmarkImages measures node/images as the manager asks it about a job of ten thousand
// nodes, which are numbers to it.
func BenchmarkImages(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	in := points.ImagesInput{
		Job: points.Job{Name: "warm", Namespace: "shop", Image: "nginx", Tag: "1.28"}, Parallelism: 100, Free: 40,
		Counts: points.Nodes{Total: 10_000, Waiting: 9000, Pulling: 60, Succeeded: 940}, Registry: points.Registry{Name: "docker.io", Pulling: 60},
		Groups: map[string]map[string]points.Nodes{"zone": {"a": {Total: 5000}, "b": {Total: 5000}}, "region": {"r": {Total: 10_000}}},
	}
	b.ReportAllocs()
	for b.Loop() {
		out, _ := engine.Decide(b.Context(), e, points.ImagesPoint(), decision.Subject{Namespace: "shop", Name: "warm"}, in)
		if out.Begin != 40 {
			b.Fatal(out)
		}
	}
}

// BenchmarkNodes measures node/rank for a batch of nodes.
func BenchmarkNodes(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	in := points.RankInput{Job: points.Job{Name: "warm", Namespace: "shop"}}
	for i := range 1000 {
		in.Nodes = append(in.Nodes, points.NodeFacts{Name: fmt.Sprintf("node-%d", i), Zone: "a", Labels: map[string]string{"pool": "web", "kubernetes.io/os": "linux"}})
	}
	b.ReportAllocs()
	for b.Loop() {
		out, record := engine.Decide(b.Context(), e, points.RankPoint(), decision.Subject{Namespace: "shop", Name: "warm"}, in)
		if len(out.Keys) != len(in.Nodes) || record.Outcome != decision.Decided {
			b.Fatal(record)
		}
	}
}

// BenchmarkMarkers measures node/markers as the manager asks it about a pod.
func BenchmarkMarkers(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	in := points.MarkersInput{Namespace: "shop", Pod: points.Pod{Name: "game-1", Labels: map[string]string{"app": "game"}}}
	for i := range 3 {
		in.Results = append(in.Results, points.ProbeResult{
			Marker: "game", Probe: fmt.Sprint(i), Container: "server", State: points.ProbeSucceeded, ConditionType: fmt.Sprintf("game.example/%d", i),
			Policies: []points.MarkerPolicy{
				{State: points.ProbeSucceeded, Labels: map[string]string{fmt.Sprintf("l%d", i): "true"}},
				{State: points.ProbeFailed, Labels: map[string]string{fmt.Sprintf("l%d", i): "false"}},
			},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		out, record := engine.Decide(b.Context(), e, points.MarkersPoint(), decision.Subject{Namespace: "shop", Name: "game-1"}, in)
		if len(out.Conditions) != 3 || len(out.Labels) != 3 {
			b.Fatal(record.Error)
		}
	}
}

// BenchmarkTermination measures node/termination as the manager asks it about a pod.
func BenchmarkTermination(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	in := points.TerminationInput{Namespace: "shop", Pod: points.Pod{Name: "report-1"}, RestartPolicy: "Never", Phase: "Running", Containers: []points.EndingContainer{
		{Name: "main", Known: true, Terminated: true, Ended: true}, {Name: "proxy", Sidecar: true, Known: true},
	}}
	b.ReportAllocs()
	for b.Loop() {
		out, record := engine.Decide(b.Context(), e, points.TerminationPoint(), decision.Subject{Namespace: "shop", Name: "report-1"}, in)
		if len(out.Stop) != 1 {
			b.Fatal(record.Error)
		}
	}
}
