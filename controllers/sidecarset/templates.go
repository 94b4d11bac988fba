// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/marks"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// hashLabel is the label of revisions with their hash.
const hashLabel = "controller.kubernetes.io/hash"

// templates are the revisions of a SidecarSet. The hash of its containers tells which one a pod has.
type templates struct {
	*rollout.PodTemplates
	set    *kruise.SidecarSet
	hashes marks.Hashes
}

// Templates implements rollout.Kind.
func (k *Kind) Templates(ctx context.Context, r *rollout.Round) (rollout.Templates, error) {
	m, set, err := known(r)
	if err != nil {
		return nil, err
	}
	data, err := history.Encode(&set.Spec)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{kruise.SidecarSetNameKey: set.Name}
	if set.Spec.CustomVersion != "" {
		labels[kruise.SidecarSetCustomVersionKey] = set.Spec.CustomVersion
	}
	all, err := r.History(ctx, revision.Owner{
		Kind:       k.Type().GroupVersionKind,
		Document:   &revision.Document{Data: data, Namespace: k.namespace, Labels: labels, HashLabel: hashLabel},
		Collisions: ptr.Deref(set.Status.CollisionCount, 0),
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := relabel(ctx, r, all.History.Update, set.Spec.CustomVersion); err != nil {
		return nil, err
	}
	return &templates{PodTemplates: all, set: set, hashes: m.hashes}, nil
}

// relabel gives the latest revision the version that the spec has now.
func relabel(ctx context.Context, r *rollout.Round, latest *appsv1.ControllerRevision, version string) error {
	if version == "" || latest.Labels[kruise.SidecarSetCustomVersionKey] == version {
		return nil
	}
	next := latest.DeepCopy()
	next.Labels = maps.Clone(next.Labels)
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	next.Labels[kruise.SidecarSetCustomVersionKey] = version
	if err := r.Client().Patch(ctx, next, client.MergeFrom(latest)); err != nil {
		return fmt.Errorf("labelling revision %s with its version: %w", latest.Name, err)
	}
	return nil
}

// entry is what a pod says of the SidecarSet. One that cannot be read says nothing.
func (t *templates) entry(pod *corev1.Pod) marks.Entry {
	entries, err := marks.Read(pod, kruise.SidecarSetHashKey)
	if err != nil {
		return marks.Entry{}
	}
	return entries[t.set.Name]
}

// At implements rollout.Templates: the revision if the pod names it, else its hash.
func (t *templates) At(pod *corev1.Pod) string {
	entry := t.entry(pod)
	if entry.ControllerRevision != "" {
		return entry.ControllerRevision
	}
	return entry.Hash
}

// Is implements rollout.Templates.
func (t *templates) Is(pod *corev1.Pod, name string) bool {
	entry := t.entry(pod)
	if name == t.Update() {
		return entry.Hash == t.hashes.Hash
	}
	return entry.ControllerRevision == name
}

// Current implements rollout.Templates. Pods may be of many revisions; none is the one before.
func (t *templates) Current() string { return t.Update() }

// Label implements rollout.Templates.
func (t *templates) Label(name string) string { return name }

// Compare implements rollout.Templates. Pods that differ in more than images are no candidates.
func (t *templates) Compare(string, string) (rollout.Comparison, error) {
	var changes []points.TemplateChange
	for i := range t.set.Spec.Containers {
		changes = append(changes, points.TemplateChange{
			Class: points.ChangeImage, Op: "replace", Path: fmt.Sprintf("/spec/containers/%d/image", i), Container: t.set.Spec.Containers[i].Name,
		})
	}
	return rollout.Comparison{Known: true, Diff: inplace.Difference{Changes: changes}}, nil
}

// TruncateHistory implements rollout.Kind: it deletes the oldest revisions that nothing uses, beyond the limit, which
// counts all of them (SS-16).
func (k *Kind) TruncateHistory(ctx context.Context, r *rollout.Round, f *rollout.Facts, _ bool) error {
	t, ok := f.Templates.(*templates)
	if !ok {
		return fmt.Errorf("truncating the history: the templates are a %T", f.Templates)
	}
	limit := max(int(ptr.Deref(t.set.Spec.RevisionHistoryLimit, 10)), 1)
	if len(t.History.All) <= limit { // no pod has to be asked
		return nil
	}
	used := map[string]bool{}
	for _, p := range f.Pods {
		used[t.entry(p.Pod).ControllerRevision] = true
	}
	for _, p := range f.Gone {
		used[t.entry(p).ControllerRevision] = true
	}
	named := t.set.Spec.InjectionStrategy.Revision
	live := func(rev *appsv1.ControllerRevision) bool { return used[rev.Name] || history.Names(named, rev) }
	kept := 0
	for _, rev := range t.History.All {
		if rev.Name == t.Update() || live(rev) {
			kept++
		}
	}
	return t.History.Truncate(ctx, r.Client(), max(limit-kept, 0), live)
}
