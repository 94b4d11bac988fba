package cloneset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/qos"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// way is how pods get from one revision to another, and what differs.
type way struct {
	out  decision.ChangeOutput
	diff inplace.Difference
}

// way asks rollout/change once a round for each old revision: the answer is the
// same for all pods of it.
func (r *Reconciler) way(ctx context.Context, w *world, from, to *appsv1.ControllerRevision) (way, error) {
	w.changesMu.Lock()
	defer w.changesMu.Unlock()
	name := ""
	if from != nil {
		name = from.Name
	}
	if got, ok := w.changes[name]; ok {
		return got, nil
	}
	in := decision.ChangeInput{
		Workload: w.workload(), Policy: w.strategy.Policy, From: name, To: to.Name, Known: from != nil,
		Changes: []decision.TemplateChange{},
		Gates: decision.ChangeGates{
			VerticalScaling: w.gates.VerticalScaling, RecreateOnNewClaims: w.gates.RecreateOnNewClaims,
			EnvFromMetadata: w.gates.EnvFromMetadata, NodeAgent: w.gates.NodeAgent,
		},
	}
	got := way{}
	if from != nil {
		var err error
		if got.diff, err = r.classifier.Between(from, to); err != nil {
			return way{}, fmt.Errorf("comparing revisions: %w", err)
		}
		in.Changes = append(in.Changes, got.diff.Changes...)
		in.QoSChanged = qos.Of(&got.diff.Old.Spec) != qos.Of(&got.diff.New.Spec)
		in.ClaimsChanged = claimsChanged(from, to)
		for name := range got.diff.EnvRefresh() {
			if !slices.ContainsFunc(in.Changes, func(c decision.TemplateChange) bool {
				return c.Class == decision.ChangeImage && c.Container == name
			}) {
				in.EnvRefresh = append(in.EnvRefresh, name)
			}
		}
		slices.Sort(in.EnvRefresh)
	}
	var rec decision.Record
	got.out, rec = engine.Decide(ctx, r.engine, decision.RolloutChange(), w.subject(), in)
	w.decided(rec)
	if got.out.Action == decision.InPlace && from == nil {
		// The clamp: without both templates there is nothing to change a pod by.
		got.out = decision.RolloutChange().Undecided(in, true)
	}
	w.changes[name] = got
	return got, nil
}

// claimsChanged is A-01, rule 2: one revision that recorded nothing blocks
// nothing.
func claimsChanged(from, to *appsv1.ControllerRevision) bool {
	a, okA := from.Annotations[revision.ClaimsHashKey]
	b, okB := to.Annotations[revision.ClaimsHashKey]
	return okA && okB && a != b
}

func shortOf(label string) string { return revision.Short(label) }
