// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"fmt"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/injection"
	"github.com/regatta-sh/regatta/policies"
)

// BenchmarkSidecars measures one decision about a pod as the webhook waits for it, by how
// many SidecarSets select the pod.
func BenchmarkSidecars(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("sets=%d", n), func(b *testing.B) {
			in := injection.SidecarsInput{Pod: pod()}
			for i := range n {
				in.Sets = append(in.Sets, injection.Set{Name: fmt.Sprint("set-", i), Selected: true, Draw: 0.5, FailurePolicy: injection.FailClosed, Containers: []string{fmt.Sprint("agent-", i)}})
			}
			out := measure(b, injection.SidecarsPoint(), in)
			if len(out.Inject) != n {
				b.Fatalf("%d of %d are given", len(out.Inject), n)
			}
		})
	}
}

// BenchmarkResources measures one decision about a container.
func BenchmarkResources(b *testing.B) {
	in := injection.ResourcesInput{
		Pod: pod(), Set: "logs", Container: "shipper", Mode: "sum", Pattern: ".*", Targets: []string{"main"},
		Limits: injection.Computed{CPU: &injection.Amount{Expression: "cpu*50%", Value: 500}},
	}
	if out := measure(b, injection.ResourcesPoint(), in); out.Limits.CPU == nil || *out.Limits.CPU != 500 {
		b.Fatalf("%+v", out)
	}
}

func pod() injection.Pod {
	return injection.Pod{
		Namespace: "shop", Name: "web-", Labels: map[string]string{"app": "web"}, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "shop"},
		Owner: &injection.Owner{Group: "apps", Kind: "ReplicaSet", Name: "web"}, Containers: []injection.Container{{Name: "main", Image: "web:1"}},
	}
}

func measure[In, Out any](b *testing.B, point decision.Point[In, Out], in In) (out Out) {
	b.Helper()
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	b.ReportAllocs()
	for b.Loop() {
		var record decision.Record
		if out, record = engine.Decide(b.Context(), e, point, decision.Subject{Kind: "Pod", Namespace: "shop", Name: "web-"}, in); record.Outcome != decision.Decided {
			b.Fatalf("%s %s", record.Outcome, record.Error)
		}
	}
	return out
}

// BenchmarkLiveness measures injection/liveness as the webhook asks it about a pod.
func BenchmarkLiveness(b *testing.B) {
	in := injection.LivenessInput{
		Pod: pod(), Asked: true, Containers: []injection.LivenessContainer{{Name: "web", Handler: "httpGet", Supported: true}},
	}
	in.Pod.Owner = &injection.Owner{Kind: "CloneSet", Name: "web"}
	if out := measure(b, injection.LivenessPoint(), in); len(out.Take) != 1 {
		b.Fatalf("taken are %q", out.Take)
	}
}
