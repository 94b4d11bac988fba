// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func claimName(set *kruise.StatefulSet, template string, ordinal int) string {
	return template + "-" + set.Name + "-" + strconv.Itoa(ordinal)
}

// hasStaleClaim reports whether a claim of an ordinal is still owned by a pod that is gone. The garbage collector deletes
// such a claim, so a pod that used it would wait indefinitely (ASTS-13).
func (s *scaler) hasStaleClaim(ordinal int) bool {
	if !s.k.Gates.AutoDeletePVC || !deletesClaims(s.retentionPolicy().WhenScaled) {
		return false
	}
	for _, t := range slices.Concat(s.set.Spec.VolumeClaimTemplates, s.claimTemplates(s.t.History.Current)) { // the pod will be of one of the two revisions
		c := s.claims.named[claimName(s.set, t.Name, ordinal)]
		if c == nil {
			continue
		}
		for _, o := range c.OwnerReferences {
			if o.Kind == "Pod" && o.Name == podName(s.set, ordinal) {
				return true // the owner is gone: the ordinal has no pod
			}
		}
	}
	return false
}

// createClaims creates the claims of an ordinal that do not exist yet.
func (s *scaler) createClaims(ctx context.Context, ordinal int, templates []corev1.PersistentVolumeClaim) error {
	for i := range templates {
		t := &templates[i]
		name := claimName(s.set, t.Name, ordinal)
		if c := s.claims.named[name]; c != nil {
			if c.DeletionTimestamp != nil {
				return fmt.Errorf("pvc %s is to be deleted", name)
			}
			continue
		}
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.set.Namespace, Labels: map[string]string{}, Annotations: maps.Clone(t.Annotations)},
			Spec:       *t.Spec.DeepCopy(),
		}
		maps.Copy(claim.Labels, t.Labels)
		maps.Copy(claim.Labels, s.set.Spec.Selector.MatchLabels)
		claim.OwnerReferences = s.claimOwners(nil, nil, true)
		err := s.r.CachedClient().Create(ctx, claim)
		switch {
		case apierrors.IsAlreadyExists(err): // the cache does not show the claim yet
		case err != nil:
			s.r.RecordWarning(kruise.FailedCreateReason, fmt.Sprintf("create Claim %s Pod %s in StatefulSet %s failed error: %v", name, podName(s.set, ordinal), s.set.Name, err))
			return fmt.Errorf("creating claim %s: %w", name, err)
		default:
			s.r.RecordNormal(kruise.SuccessfulCreateReason, fmt.Sprintf("create Claim %s Pod %s in StatefulSet %s success", name, podName(s.set, ordinal), s.set.Name))
		}
	}
	return nil
}

// retentionPolicy is what happens to claims of deleted sets and pods. If the set does not say, claims are kept.
func (s *scaler) retentionPolicy() kruise.StatefulSetPersistentVolumeClaimRetentionPolicy {
	if p := s.set.Spec.PersistentVolumeClaimRetentionPolicy; p != nil {
		return *p
	}
	return kruise.StatefulSetPersistentVolumeClaimRetentionPolicy{}
}

func deletesClaims(p appsv1.PersistentVolumeClaimRetentionPolicyType) bool {
	return p == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// claimOwners returns the owner references that a claim is to have (ASTS-13). References to other owners stay.
// pod is the pod of the claim, nil if it does not exist yet.
func (s *scaler) claimOwners(have []metav1.OwnerReference, pod *corev1.Pod, wanted bool) []metav1.OwnerReference {
	out := slices.DeleteFunc(slices.Clone(have), func(o metav1.OwnerReference) bool {
		return o.UID == s.set.UID || pod != nil && o.UID == pod.UID
	})
	if !s.k.Gates.AutoDeletePVC {
		return slices.Clone(have)
	}
	policy, kind := s.retentionPolicy(), OwnerKind()
	byPod := deletesClaims(policy.WhenScaled) && !wanted
	if deletesClaims(policy.WhenDeleted) && (wanted || !byPod) {
		out = append(out, metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: s.set.Name, UID: s.set.UID})
	}
	if byPod && pod != nil {
		out = append(out, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
	}
	return out
}

// ownClaims returns the writes that give the claims of a pod the owners that they are to
// have. If the cache does not show a claim that is to be deleted with its pod, the claim is read past the
// cache: it may be as new as the pod, and nothing would delete it later.
func (s *scaler) ownClaims(ctx context.Context, pod *corev1.Pod, ordinal int) (acts []func() error) {
	if !s.k.Gates.AutoDeletePVC {
		return nil
	}
	wanted := s.ordinals.IsInBounds(ordinal)
	for _, t := range s.claimTemplates(s.t.RevisionOf(pod)) {
		name := claimName(s.set, t.Name, ordinal)
		c := s.claims.named[name]
		switch {
		case c == nil && (wanted || !deletesClaims(s.retentionPolicy().WhenScaled)):
		case c == nil:
			acts = append(acts, func() error {
				c := &corev1.PersistentVolumeClaim{}
				if err := s.r.LiveReader().Get(ctx, client.ObjectKey{Namespace: s.set.Namespace, Name: name}, c); err != nil {
					return client.IgnoreNotFound(err)
				}
				return s.patchClaimOwners(ctx, c, pod, wanted)
			})
		case !sameOwners(c.OwnerReferences, s.claimOwners(c.OwnerReferences, pod, wanted)):
			acts = append(acts, func() error { return s.patchClaimOwners(ctx, c, pod, wanted) })
		}
	}
	return acts
}

// patchClaimOwners writes the owners of a claim.
func (s *scaler) patchClaimOwners(ctx context.Context, c *corev1.PersistentVolumeClaim, pod *corev1.Pod, wanted bool) error {
	next := c.DeepCopy()
	next.OwnerReferences = s.claimOwners(c.OwnerReferences, pod, wanted)
	if sameOwners(c.OwnerReferences, next.OwnerReferences) {
		return nil
	}
	if err := s.r.CachedClient().Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the owners of claim %s: %w", c.Name, err)
	}
	return nil
}

// sameOwners compares by UID, in any order.
func sameOwners(a, b []metav1.OwnerReference) bool {
	uids := func(refs []metav1.OwnerReference) []string {
		out := make([]string, len(refs))
		for i, r := range refs {
			out[i] = string(r.UID)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(uids(a), uids(b))
}
