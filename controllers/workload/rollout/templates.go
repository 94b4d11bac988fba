// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/qos"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// RevisionLabel is the label of pods with the name or the hash of their revision.
const RevisionLabel = appsv1.ControllerRevisionHashLabelKey

// PodTemplates are the Templates of a kind whose ControllerRevisions have its pod
// template, and whose pods have RevisionLabel.
type PodTemplates struct {
	History revision.History
	// ShortHash labels pods with the hash instead of the name (CloneSetShortHash).
	ShortHash  bool
	classifier *inplace.Classifier
}

// AsPodTemplates returns the PodTemplates, also for a kind that embeds them.
func (t *PodTemplates) AsPodTemplates() *PodTemplates { return t }

// ResolveHistory resolves the revisions of a workload. owner's Object and Live need not be set.
func (r *Round) ResolveHistory(ctx context.Context, owner revision.Owner, classifier *inplace.Classifier) (*PodTemplates, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := r.c.Client.List(ctx, list, client.InNamespace(r.Workload.GetNamespace()), client.MatchingFields{OwnerIndex: string(r.Workload.GetUID())}); err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	owned, err := r.adoptRevisions(ctx, list.Items)
	if err != nil {
		return nil, err
	}
	existing := r.memory.revisions.OverlayCached(owned, r.Now.Add(-r.c.timeout))
	owner.Object, owner.Live = r.Workload, r.c.Live
	if r.c.typ.Adopts != nil {
		owner.Adopt = r.adoptRevision
	}
	h, err := revision.ResolveHistory(ctx, r.c.Client, owner, existing)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(existing, h.Update) {
		r.memory.revisions[h.Update.Name] = ownRevision{h.Update, r.Now}
	}
	return &PodTemplates{History: h, classifier: classifier}, nil
}

// TruncateHistory deletes the oldest revisions beyond limit that neither the workload
// nor a pod has. It is called after the status is written: when an update is complete, the previous
// revision becomes unused, and no event may follow that starts another round. After a round that
// failed, the previous current revision is kept: a pod may have been created from it, or the status may name
// it, and only the answer was lost.
func (r *Round) TruncateHistory(ctx context.Context, f *Facts, t *PodTemplates, limit int, failed bool) error {
	used := map[string]bool{}
	if failed {
		used[revision.ShortHash(t.CurrentRevision())] = true
	}
	for _, p := range f.Pods {
		used[revision.ShortHash(p.Labels[RevisionLabel])] = true
	}
	for _, p := range f.Gone {
		used[revision.ShortHash(p.Labels[RevisionLabel])] = true
	}
	live := func(rev *appsv1.ControllerRevision) bool { return used[revision.ShortHash(rev.Name)] }
	maps.DeleteFunc(r.memory.revisions, func(name string, own ownRevision) bool {
		return name != t.UpdateRevision() && !live(own.ControllerRevision)
	})
	history := t.History
	if of := r.c.typ.CurrentRevision; of != nil {
		if at := slices.IndexFunc(history.All, func(rev *appsv1.ControllerRevision) bool { return rev.Name == *of(r.Workload) }); at >= 0 {
			history.Current = history.All[at]
		}
	}
	return history.Truncate(ctx, r.c.Client, limit, live)
}

// CurrentRevision implements Templates.
func (t *PodTemplates) CurrentRevision() string { return t.History.Current.Name }

// UpdateRevision implements Templates.
func (t *PodTemplates) UpdateRevision() string { return t.History.Update.Name }

// PodRevision implements Templates.
func (t *PodTemplates) PodRevision(pod *corev1.Pod) string { return pod.Labels[RevisionLabel] }

// RevisionOf returns the revision of a pod, nil if the history does not have it any more.
func (t *PodTemplates) RevisionOf(pod *corev1.Pod) *appsv1.ControllerRevision {
	if t.HasRevision(pod, t.UpdateRevision()) { // true for most pods
		return t.History.Update
	}
	return t.History.ByLabel(t.PodRevision(pod))
}

// HasRevision implements Templates.
func (t *PodTemplates) HasRevision(pod *corev1.Pod, name string) bool {
	return revision.SameHash(pod.Labels[RevisionLabel], name)
}

// LabelValue implements Templates (CS-05).
func (t *PodTemplates) LabelValue(name string) string {
	if t.ShortHash {
		return revision.ShortHash(name)
	}
	return name
}

// CompareRevisions implements Templates.
func (t *PodTemplates) CompareRevisions(from, to string) (Comparison, error) {
	a, b := t.History.ByLabel(from), t.History.ByLabel(to)
	if a == nil || b == nil {
		return Comparison{}, nil
	}
	diff, err := t.classifier.CompareRevisions(a, b)
	if err != nil {
		return Comparison{}, err
	}
	return Comparison{
		Known: true, Diff: diff, QoSChanged: qos.ComputeClass(&diff.Old.Spec) != qos.ComputeClass(&diff.New.Spec), ClaimsChanged: claimsChanged(a, b),
		RestartRequested: diff.RequestsRestart(), EnvRefresh: envRefresh(diff),
	}, nil
}

// claimsChanged applies A-01, rule 2: if one revision recorded nothing, the claims count as unchanged.
func claimsChanged(from, to *appsv1.ControllerRevision) bool {
	a, okA := from.Annotations[revision.ClaimsHashKey]
	b, okB := to.Annotations[revision.ClaimsHashKey]
	return okA && okB && a != b
}

// envRefresh names the containers whose env reads changed metadata and whose image does not change.
func envRefresh(diff inplace.Difference) []string {
	var out []string
	for name := range diff.EnvRefresh() {
		if !slices.ContainsFunc(diff.Changes, func(c points.TemplateChange) bool {
			return c.Class == points.ChangeImage && c.Container == name
		}) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
