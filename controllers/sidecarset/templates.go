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
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// hashLabel is the label of revisions whose value is their hash.
const hashLabel = "controller.kubernetes.io/hash"

// templates are the revisions of a SidecarSet. The revision of a pod is known by the hash of its containers.
type templates struct {
	*rollout.PodTemplates
	set    *kruise.SidecarSet
	hashes podmeta.Hashes
}

// ResolveTemplates implements rollout.Kind.
func (k *Kind) ResolveTemplates(ctx context.Context, r *rollout.Round) (rollout.Templates, error) {
	m, set, err := loadMemory(r)
	if err != nil {
		return nil, err
	}
	data, err := history.EncodeSpec(&set.Spec)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{kruise.SidecarSetNameKey: set.Name}
	if set.Spec.CustomVersion != "" {
		labels[kruise.SidecarSetCustomVersionKey] = set.Spec.CustomVersion
	}
	all, err := r.ResolveHistory(ctx, revision.Owner{
		Kind:       k.WorkloadType().GroupVersionKind,
		Document:   &revision.Document{Data: data, Namespace: k.namespace, Labels: labels, HashLabel: hashLabel},
		Collisions: ptr.Deref(set.Status.CollisionCount, 0),
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := updateVersionLabel(ctx, r, all.History.Update, set.Spec.CustomVersion); err != nil {
		return nil, err
	}
	return &templates{PodTemplates: all, set: set, hashes: m.hashes}, nil
}

// updateVersionLabel sets the label of the latest revision to the version in the spec.
func updateVersionLabel(ctx context.Context, r *rollout.Round, latest *appsv1.ControllerRevision, version string) error {
	if version == "" || latest.Labels[kruise.SidecarSetCustomVersionKey] == version {
		return nil
	}
	next := latest.DeepCopy()
	next.Labels = maps.Clone(next.Labels)
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	next.Labels[kruise.SidecarSetCustomVersionKey] = version
	if err := r.CachedClient().Patch(ctx, next, client.MergeFrom(latest)); err != nil {
		return fmt.Errorf("labelling revision %s with its version: %w", latest.Name, err)
	}
	return nil
}

// readEntry returns what a pod records of the SidecarSet. An annotation that cannot be read counts as empty.
func (t *templates) readEntry(pod *corev1.Pod) podmeta.Entry {
	entries, err := podmeta.Read(pod, kruise.SidecarSetHashKey)
	if err != nil {
		return podmeta.Entry{}
	}
	return entries[t.set.Name]
}

// PodRevision implements rollout.Templates: the revision if the pod names it, else its hash.
func (t *templates) PodRevision(pod *corev1.Pod) string {
	entry := t.readEntry(pod)
	if entry.ControllerRevision != "" {
		return entry.ControllerRevision
	}
	return entry.Hash
}

// HasRevision implements rollout.Templates.
func (t *templates) HasRevision(pod *corev1.Pod, name string) bool {
	entry := t.readEntry(pod)
	if name == t.UpdateRevision() {
		return entry.Hash == t.hashes.Hash
	}
	return entry.ControllerRevision == name
}

// CurrentRevision implements rollout.Templates. Pods may be of many revisions, so none of them is the previous one.
func (t *templates) CurrentRevision() string { return t.UpdateRevision() }

// LabelValue implements rollout.Templates.
func (t *templates) LabelValue(name string) string { return name }

// CompareRevisions implements rollout.Templates. Pods that differ in more than images are no candidates.
func (t *templates) CompareRevisions(string, string) (rollout.Comparison, error) {
	var changes []points.TemplateChange
	for i := range t.set.Spec.Containers {
		changes = append(changes, points.TemplateChange{
			Class: points.ChangeImage, Op: "replace", Path: fmt.Sprintf("/spec/containers/%d/image", i), Container: t.set.Spec.Containers[i].Name,
		})
	}
	return rollout.Comparison{Known: true, Diff: inplace.Difference{Changes: changes}}, nil
}

// TruncateHistory implements rollout.Kind: it deletes the oldest unused revisions beyond the limit. Revisions in use count
// towards the limit (SS-16).
func (k *Kind) TruncateHistory(ctx context.Context, r *rollout.Round, f *rollout.Facts, _ bool) error {
	t, ok := f.Templates.(*templates)
	if !ok {
		return fmt.Errorf("truncating the history: the templates are a %T", f.Templates)
	}
	limit := max(int(ptr.Deref(t.set.Spec.RevisionHistoryLimit, 10)), 1)
	if len(t.History.All) <= limit { // no pod has to be read
		return nil
	}
	used := map[string]bool{}
	for _, p := range f.Pods {
		used[t.readEntry(p.Pod).ControllerRevision] = true
	}
	for _, p := range f.Gone {
		used[t.readEntry(p).ControllerRevision] = true
	}
	named := t.set.Spec.InjectionStrategy.Revision
	live := func(rev *appsv1.ControllerRevision) bool {
		return used[rev.Name] || history.MatchesRevision(named, rev)
	}
	kept := 0
	for _, rev := range t.History.All {
		if rev.Name == t.UpdateRevision() || live(rev) {
			kept++
		}
	}
	return t.History.Truncate(ctx, r.CachedClient(), max(limit-kept, 0), live)
}
