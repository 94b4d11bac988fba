// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClaimsHashKey is the annotation with a revision's ClaimsHash.
const ClaimsHashKey = "kruise.io/cloneset-volumeclaimtemplate-hash"

// Owner is the workload that a history belongs to.
type Owner struct {
	Object client.Object
	// Kind is the kind in the owner references of pods and revisions.
	Kind     schema.GroupVersionKind
	Selector *metav1.LabelSelector
	Template *corev1.PodTemplateSpec
	Claims   []corev1.PersistentVolumeClaim
	// WithoutClaims is true for kinds whose revisions do not record the hash of the claim templates.
	WithoutClaims bool
	// RecordsClaims is true for kinds whose revisions record the claim templates themselves.
	RecordsClaims bool
	Collisions    int32
	// Document is the content of the revisions, for workloads whose revisions are no pod templates.
	Document *Document
	// Current is the revision that the status names, "" at first.
	Current string
	// Live reads past the cache: if a name is taken, it is often by a
	// revision of the workload that the cache does not show yet.
	Live client.Reader
	// Adopt makes the workload the owner of a revision that has none, and gives it labels that its
	// selector matches. It is nil for kinds that adopt no revisions.
	Adopt func(ctx context.Context, rev *appsv1.ControllerRevision, labels map[string]string) error
}

// Document is the content of revisions that are no pod templates.
type Document struct {
	Data []byte
	// Namespace is the namespace of the revisions.
	Namespace string
	Labels    map[string]string
	// HashLabel is the label whose value is the hash of a revision.
	HashLabel string
	// Bare revisions do not get the annotations of the workload.
	Bare bool
	// Same reports whether the data of two revisions have the same meaning; nil compares them as JSON.
	Same func(a, b []byte) bool
}

// hashLabel is the label whose value is the hash of a revision.
func (o *Owner) hashLabel() string {
	if o.Document != nil {
		return o.Document.HashLabel
	}
	return appsv1.ControllerRevisionHashLabelKey
}

func (o *Owner) revisionsEqual(a, b *appsv1.ControllerRevision) bool {
	return EqualData(a, b) || o.Document != nil && o.Document.Same != nil && o.Document.Same(a.Data.Raw, b.Data.Raw)
}

// History is a workload's revisions, oldest first.
type History struct {
	All             []*appsv1.ControllerRevision
	Current, Update *appsv1.ControllerRevision
	Collisions      int32
}

// ByLabel finds the revision that a pod's label names, nil if it is gone.
func (h History) ByLabel(label string) *appsv1.ControllerRevision {
	for _, r := range h.All {
		if SameHash(r.Name, label) {
			return r
		}
	}
	return nil
}

// ResolveHistory finds or creates the update revision and finds the current one.
// existing are the owner's revisions, from a cache.
func ResolveHistory(ctx context.Context, c client.Client, o Owner, existing []*appsv1.ControllerRevision) (History, error) {
	all := slices.Clone(existing)
	slices.SortStableFunc(all, func(a, b *appsv1.ControllerRevision) int {
		// OpenKruise gives all revisions of some kinds the same number.
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	h := History{All: all, Collisions: o.Collisions}
	want, err := buildRevision(o, nextNumber(all))
	if err != nil {
		return h, err
	}

	same := -1
	for i, r := range all {
		if o.revisionsEqual(r, want) {
			same = i
		}
	}
	switch {
	case same >= 0 && same == len(all)-1 && !o.isTied(all):
		if h.Update, err = recordAnew(ctx, c, o, all[same], want); err != nil {
			return h, err
		}
		h.All[same] = h.Update
	case same >= 0: // a rollback, or a revision with a tied number: the old revision becomes the newest
		bumped := all[same].DeepCopy()
		bumped.Revision = want.Revision
		if o.Document == nil && !o.WithoutClaims {
			metav1.SetMetaDataAnnotation(&bumped.ObjectMeta, ClaimsHashKey, want.Annotations[ClaimsHashKey])
		}
		if o.RecordsClaims {
			bumped, _ = withClaimTemplates(bumped, want)
		}
		patch := client.MergeFrom(all[same])
		if err := c.Patch(ctx, bumped, patch); err != nil {
			found := &appsv1.ControllerRevision{}
			if o.Live.Get(ctx, client.ObjectKeyFromObject(bumped), found) != nil || found.Revision != want.Revision {
				return h, fmt.Errorf("renumbering revision %s: %w", bumped.Name, err)
			}
			bumped = found // the write was done, and only the answer was lost
		}
		h.All = append(slices.Delete(all, same, same+1), bumped)
		h.Update = bumped
	default:
		created, collisions, err := createRevision(ctx, c, o, want)
		if err != nil {
			return h, err
		}
		h.All, h.Update, h.Collisions = append(all, created), created, collisions
	}
	h.Current = h.Update
	for _, r := range h.All {
		if r.Name == o.Current {
			h.Current = r
		}
	}
	return h, nil
}

// isTied reports whether the newest two revisions have the same number. A revision that was created before
// the workload adopted the revisions of its predecessor has the number of one of these. For kinds that adopt
// no revisions the result is false, since OpenKruise gives all their revisions the same number.
func (o *Owner) isTied(sorted []*appsv1.ControllerRevision) bool {
	last := len(sorted) - 1
	return o.Adopt != nil && last > 0 && sorted[last].Revision == sorted[last-1].Revision
}

// recordAnew updates the record of claim templates in the update revision, if it has one.
// A revision without a record is not changed: another release created it.
func recordAnew(ctx context.Context, c client.Client, o Owner, rev, want *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if _, records := rev.Annotations[ClaimTemplatesKey]; !o.RecordsClaims || !records {
		return rev, nil
	}
	next, changed := withClaimTemplates(rev, want)
	if !changed {
		return rev, nil
	}
	if err := c.Patch(ctx, next, client.MergeFrom(rev)); err != nil {
		return nil, fmt.Errorf("recording the volume claim templates on revision %s: %w", rev.Name, err)
	}
	return next, nil
}

func nextNumber(sorted []*appsv1.ControllerRevision) int64 {
	if len(sorted) == 0 {
		return 1
	}
	return sorted[len(sorted)-1].Revision + 1
}

func buildRevision(o Owner, number int64) (*appsv1.ControllerRevision, error) {
	if o.Document != nil {
		return o.documentRevision(number), nil
	}
	data, err := EncodeTemplate(o.Template)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(o.Object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if !o.WithoutClaims {
		if annotations[ClaimsHashKey], err = ClaimsHash(o.Claims); err != nil {
			return nil, err
		}
	}
	delete(annotations, ClaimTemplatesKey)
	if o.RecordsClaims {
		if err := recordClaimTemplates(annotations, o.Claims); err != nil {
			return nil, err
		}
	}
	labels := map[string]string{}
	maps.Copy(labels, o.Template.Labels)
	if o.Selector != nil {
		maps.Copy(labels, o.Selector.MatchLabels)
	}
	labels[appsv1.ControllerRevisionHashLabelKey] = HashData(data, o.Collisions)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            o.Object.GetName() + "-" + HashData(data, o.Collisions),
			Namespace:       o.Object.GetNamespace(),
			Labels:          labels,
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o.Object, o.Kind)},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}, nil
}

// documentRevision builds the revision of a document, with the annotations of the workload unless it is Bare.
func (o *Owner) documentRevision(number int64) *appsv1.ControllerRevision {
	hash := HashData(o.Document.Data, o.Collisions)
	labels := map[string]string{o.Document.HashLabel: hash}
	maps.Copy(labels, o.Document.Labels)
	annotations := maps.Clone(o.Object.GetAnnotations())
	if o.Document.Bare {
		annotations = nil
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.Object.GetName() + "-" + hash, Namespace: o.Document.Namespace,
			Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o.Object, o.Kind)},
		},
		Data:     runtime.RawExtension{Raw: o.Document.Data},
		Revision: number,
	}
}

// createRevision creates a revision. If another revision has the same name and other data, that is a
// hash collision: the count is increased and another name is tried.
func createRevision(ctx context.Context, c client.Client, o Owner, want *appsv1.ControllerRevision) (*appsv1.ControllerRevision, int32, error) {
	collisions := o.Collisions
	for range 5 {
		err := c.Create(ctx, want)
		if err == nil {
			return want, collisions, nil
		}
		// The revision may exist, also after any other error. If only the answer was lost,
		// the next revision would get the same number.
		found := &appsv1.ControllerRevision{}
		read := o.Live.Get(ctx, client.ObjectKeyFromObject(want), found)
		if read == nil && metav1.IsControlledBy(found, o.Object) && o.revisionsEqual(found, want) {
			return found, collisions, nil
		}
		if read == nil && o.Adopt != nil && metav1.GetControllerOfNoCopy(found) == nil && found.DeletionTimestamp == nil && o.revisionsEqual(found, want) {
			return found, collisions, o.Adopt(ctx, found, want.Labels) // the cache does not show yet that the revision has no owner
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, collisions, fmt.Errorf("creating revision %s: %w", want.Name, err)
		}
		if read != nil {
			return nil, collisions, fmt.Errorf("reading revision %s: %w", want.Name, read)
		}
		collisions++
		want.Name = o.Object.GetName() + "-" + HashData(want.Data.Raw, collisions)
		want.Labels[o.hashLabel()] = HashData(want.Data.Raw, collisions)
		want.ResourceVersion = ""
	}
	return nil, collisions, fmt.Errorf("creating revision %s: too many names are taken", want.Name)
}

// Truncate deletes the oldest revisions that nothing uses, beyond limit.
func (h History) Truncate(ctx context.Context, c client.Client, limit int, used func(*appsv1.ControllerRevision) bool) error {
	var idle []*appsv1.ControllerRevision
	for _, r := range h.All {
		if r.Name != h.Current.Name && r.Name != h.Update.Name && !used(r) {
			idle = append(idle, r)
		}
	}
	for i := 0; i < len(idle)-max(limit, 0); i++ {
		if err := client.IgnoreNotFound(c.Delete(ctx, idle[i])); err != nil {
			return fmt.Errorf("deleting revision %s: %w", idle[i].Name, err)
		}
	}
	return nil
}
