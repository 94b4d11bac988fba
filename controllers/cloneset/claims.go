// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// findClaims finds the claims that pods may use, and the ids of those that terminate.
func (s *scaler) findClaims(ctx context.Context) error {
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.r.CachedClient().List(ctx, list, client.InNamespace(s.set.Namespace), client.MatchingFields{rollout.OwnerIndex: string(s.set.UID)}); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	usable, going := s.memory.splitClaims(list.Items)
	s.memory.claims = usable
	for _, c := range going {
		s.going = append(s.going, c.Labels[kruise.CloneSetInstanceIDKey])
	}
	return nil
}

func claimName(set *kruise.CloneSet, template, id string) string {
	return template + "-" + set.Name + "-" + id
}

// claimTemplates are the claim templates of a revision: for the update revision, those of the set.
func (s *scaler) claimTemplates(rev *appsv1.ControllerRevision) []corev1.PersistentVolumeClaim {
	if rev.Name == s.t.UpdateRevision() {
		return s.set.Spec.VolumeClaimTemplates
	}
	return revision.ClaimTemplatesOf(rev, s.set.Spec.VolumeClaimTemplates)
}

// createClaims creates the claims of a pod that do not exist yet. The API server tells whether a claim
// exists: the cache may still show one that the controller has deleted.
func (s *scaler) createClaims(ctx context.Context, pod *corev1.Pod, id string, templates []corev1.PersistentVolumeClaim) error {
	for i := range templates {
		t := &templates[i]
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: claimName(s.set, t.Name, id), Namespace: s.set.Namespace,
				Labels: map[string]string{}, Annotations: maps.Clone(t.Annotations),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set, OwnerKind())},
			},
			Spec: *t.Spec.DeepCopy(),
		}
		maps.Copy(claim.Labels, t.Labels)
		maps.Copy(claim.Labels, s.set.Spec.Selector.MatchLabels)
		claim.Labels[kruise.CloneSetInstanceIDKey] = id
		err := s.r.CachedClient().Create(ctx, claim)
		if apierrors.IsAlreadyExists(err) {
			err = s.reuseClaim(ctx, claim, id)
		}
		if err != nil {
			return fmt.Errorf("creating claim %s for pod %s: %w", claim.Name, pod.Name, err)
		}
	}
	return nil
}

// reuseClaim reads a claim that exists already past the cache. A pod whose claim is being
// deleted would wait indefinitely, so the id of such a claim is not used again.
func (s *scaler) reuseClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, id string) error {
	if err := s.r.LiveReader().Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return fmt.Errorf("reading it past the cache: %w", err)
	}
	if claim.DeletionTimestamp != nil {
		s.memory.markForeign(id)
		return errors.New("it exists and is being deleted")
	}
	return nil
}

// deleteClaims deletes the claims of a pod that the controller deletes. ReCreate deletes the pod and
// its claims even with reuse of claims, which is for pods that other clients delete. The storage
// protection of Kubernetes keeps the claims until the pod is gone.
func (s *scaler) deleteClaims(ctx context.Context, id string) error {
	for _, c := range s.memory.claims {
		if id == "" || c.Labels[kruise.CloneSetInstanceIDKey] != id {
			continue
		}
		if err := s.deleteClaim(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// deleteClaim deletes the claim with this UID, not a later one of the same name.
func (s *scaler) deleteClaim(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	err := s.r.CachedClient().Delete(ctx, c, client.Preconditions{UID: &c.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting claim %s: %w", c.Name, err)
	}
	if !apierrors.IsConflict(err) {
		s.memory.deletedClaim(c.UID)
	}
	return nil
}

// awaitedIDs are the ids of terminating pods whose claims are kept for their
// replacements: with reuse, a pod that another client deletes comes back with its data. Pods
// that the controller deletes lose their claims, so their ids are not among them.
func (s *scaler) awaitedIDs() map[string]bool {
	scale, ids := s.set.Spec.ScaleStrategy, map[string]bool{}
	if !scale.EnablePVCReuse { // the set may no longer have a template of the claims that it kept
		return ids
	}
	for _, p := range s.f.Gone {
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		kept := slices.ContainsFunc(s.memory.claims, func(c *corev1.PersistentVolumeClaim) bool {
			return c.Labels[kruise.CloneSetInstanceIDKey] == id
		})
		if id != "" && kept && p.DeletionTimestamp != nil && !slices.Contains(s.going, id) && !slices.Contains(scale.PodsToDelete, p.Name) {
			ids[id] = true
		}
	}
	return ids
}

// cleanClaims removes the claims whose pod is not active any more, unless claims
// are to be reused (CS-15). While the old pod still exists, it becomes the owner of the claim,
// so that the garbage collector deletes the claim after it.
func (s *scaler) cleanClaims(ctx context.Context) error {
	if s.set.Spec.ScaleStrategy.EnablePVCReuse || len(s.memory.claims) == 0 {
		return nil
	}
	active, leaving := map[string]bool{}, map[string]*corev1.Pod{}
	for _, p := range s.f.Pods {
		active[p.Labels[kruise.CloneSetInstanceIDKey]] = true
	}
	for _, id := range s.memory.toTry() { // their pods are still to be created
		active[id] = true
	}
	for _, p := range s.f.Gone {
		leaving[p.Labels[kruise.CloneSetInstanceIDKey]] = p
	}
	var kept []*corev1.PersistentVolumeClaim
	for _, c := range s.memory.claims {
		id := c.Labels[kruise.CloneSetInstanceIDKey]
		if id == "" || active[id] {
			kept = append(kept, c)
			continue
		}
		pod := leaving[id]
		if pod == nil {
			var stays bool
			var err error
			if pod, stays, err = s.findClaimUser(ctx, id); err != nil {
				return err
			}
			if stays {
				kept = append(kept, c)
				continue
			}
		}
		if err := s.letGo(ctx, c, pod); err != nil {
			return err
		}
	}
	s.memory.claims = kept
	return nil
}

// findClaimUser looks past the cache for a pod that uses the claims of an id, because
// deleting a claim deletes data. stays is true while such a pod is active: the cache
// does not show it yet, or it was released and has another owner now.
func (s *scaler) findClaimUser(ctx context.Context, id string) (leaving *corev1.Pod, stays bool, err error) {
	pod := &corev1.Pod{}
	name := types.NamespacedName{Namespace: s.set.Namespace, Name: podName(s.set, id)}
	if err := s.r.LiveReader().Get(ctx, name, pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("reading pod %s past the cache: %w", name.Name, err)
	}
	if rollout.IsInactive(pod) {
		return pod, false, nil
	}
	if !metav1.IsControlledBy(pod, s.set) {
		s.memory.markForeign(id)
	}
	return nil, true, nil
}

// letGo deletes a claim, or makes the pod that still exists its owner.
func (s *scaler) letGo(ctx context.Context, c *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	if pod == nil {
		return s.deleteClaim(ctx, c)
	}
	before := c.DeepCopy()
	c = c.DeepCopy()
	c.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	if err := s.r.CachedClient().Patch(ctx, c, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("handing claim %s to pod %s: %w", c.Name, pod.Name, err)
	}
	return nil
}
