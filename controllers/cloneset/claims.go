package cloneset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func claimName(set *kruise.CloneSet, template, id string) string {
	return template + "-" + set.Name + "-" + id
}

// withClaims points the pod's volumes at its own claims; a volume of the
// template with the name of a claim gives way.
func withClaims(volumes []corev1.Volume, set *kruise.CloneSet, id string) []corev1.Volume {
	var out []corev1.Volume
	own := map[string]bool{}
	for i := range set.Spec.VolumeClaimTemplates {
		name := set.Spec.VolumeClaimTemplates[i].Name
		own[name] = true
		out = append(out, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, name, id)},
		}})
	}
	for _, v := range volumes {
		if !own[v.Name] {
			out = append(out, v)
		}
	}
	return out
}

// createClaims makes the claims of a pod that do not exist yet. Whether they do is
// for the API server to say: the cache may show one that we have deleted.
func (r *Reconciler) createClaims(ctx context.Context, w *world, pod *corev1.Pod, id string) error {
	for i := range w.set.Spec.VolumeClaimTemplates {
		t := &w.set.Spec.VolumeClaimTemplates[i]
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: claimName(w.set, t.Name, id), Namespace: w.set.Namespace,
				Labels: map[string]string{}, Annotations: maps.Clone(t.Annotations),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.set, OwnerKind())},
			},
			Spec: *t.Spec.DeepCopy(),
		}
		maps.Copy(claim.Labels, t.Labels)
		maps.Copy(claim.Labels, w.set.Spec.Selector.MatchLabels)
		claim.Labels[kruise.CloneSetInstanceIDKey] = id
		err := r.client.Create(ctx, claim)
		if apierrors.IsAlreadyExists(err) {
			err = r.reuse(ctx, w, claim, id)
		}
		if err != nil {
			return fmt.Errorf("creating claim %s for pod %s: %w", claim.Name, pod.Name, err)
		}
	}
	return nil
}

// reuse looks past the cache at a claim that is there already: a pod with one that
// is on its way out would wait for ever, so its id is not used again.
func (r *Reconciler) reuse(ctx context.Context, w *world, claim *corev1.PersistentVolumeClaim, id string) error {
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return fmt.Errorf("reading it past the cache: %w", err)
	}
	if claim.DeletionTimestamp != nil {
		w.memory.take(id)
		return errors.New("it exists and is being deleted")
	}
	return nil
}

// deleteClaims deletes the claims of a pod that we delete: ReCreate means the pod
// and its claims, reuse or not, which is for pods that others delete. The storage
// protection of Kubernetes keeps them until the pod is gone.
func (r *Reconciler) deleteClaims(ctx context.Context, w *world, id string) error {
	for _, c := range w.claims {
		if id == "" || c.Labels[kruise.CloneSetInstanceIDKey] != id {
			continue
		}
		if err := r.deleteClaim(ctx, w, c); err != nil {
			return err
		}
	}
	return nil
}

// deleteClaim deletes this very claim, not one of the same name after it.
func (r *Reconciler) deleteClaim(ctx context.Context, w *world, c *corev1.PersistentVolumeClaim) error {
	err := r.client.Delete(ctx, c, client.Preconditions{UID: &c.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting claim %s: %w", c.Name, err)
	}
	w.memory.deletedClaim(c.UID)
	return nil
}

// awaitedIDs are the ids of terminating pods whose claims are kept for their
// replacements: with reuse, a pod that others delete comes back with its data. Pods
// that the controller deletes lose their claims, and are not among them.
func (w *world) awaitedIDs() map[string]bool {
	scale, ids := w.set.Spec.ScaleStrategy, map[string]bool{}
	if !scale.EnablePVCReuse || len(w.set.Spec.VolumeClaimTemplates) == 0 {
		return ids
	}
	for _, p := range w.gone {
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		kept := slices.ContainsFunc(w.claims, func(c *corev1.PersistentVolumeClaim) bool {
			return c.Labels[kruise.CloneSetInstanceIDKey] == id
		})
		if id != "" && kept && p.DeletionTimestamp != nil && !slices.Contains(w.going, id) && !slices.Contains(scale.PodsToDelete, p.Name) {
			ids[id] = true
		}
	}
	return ids
}

// cleanClaims deals with claims whose pod is not active any more, unless they
// are to be reused (CS-15). While the old pod is still there the claim is
// handed to it, so that the garbage collector takes both.
func (r *Reconciler) cleanClaims(ctx context.Context, w *world) error {
	if w.set.Spec.ScaleStrategy.EnablePVCReuse || len(w.claims) == 0 {
		return nil
	}
	active, leaving := map[string]bool{}, map[string]*corev1.Pod{}
	for _, p := range w.raw {
		active[p.Labels[kruise.CloneSetInstanceIDKey]] = true
	}
	for _, id := range w.memory.toTry() { // their pods come yet
		active[id] = true
	}
	for _, p := range w.gone {
		leaving[p.Labels[kruise.CloneSetInstanceIDKey]] = p
	}
	var kept []*corev1.PersistentVolumeClaim
	for _, c := range w.claims {
		id := c.Labels[kruise.CloneSetInstanceIDKey]
		if id == "" || active[id] {
			kept = append(kept, c)
			continue
		}
		pod := leaving[id]
		if pod == nil {
			var stays bool
			var err error
			if pod, stays, err = r.user(ctx, w, id); err != nil {
				return err
			}
			if stays {
				kept = append(kept, c)
				continue
			}
		}
		if err := r.letGo(ctx, w, c, pod); err != nil {
			return err
		}
	}
	w.claims = kept
	return nil
}

// user looks past the cache for a pod that uses the claims of an id: what is
// about to be deleted is data. stays is true while such a pod is active: the cache
// does not show it yet, or it was released and is somebody else's now.
func (r *Reconciler) user(ctx context.Context, w *world, id string) (leaving *corev1.Pod, stays bool, err error) {
	pod := &corev1.Pod{}
	name := types.NamespacedName{Namespace: w.set.Namespace, Name: podName(w.set, id)}
	if err := r.live.Get(ctx, name, pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("reading pod %s past the cache: %w", name.Name, err)
	}
	if inactive(pod) {
		return pod, false, nil
	}
	if !metav1.IsControlledBy(pod, w.set) {
		w.memory.take(id)
	}
	return nil, true, nil
}

// letGo deletes a claim, or hands it to the pod that still has it.
func (r *Reconciler) letGo(ctx context.Context, w *world, c *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	if pod == nil {
		return r.deleteClaim(ctx, w, c)
	}
	before := c.DeepCopy()
	c = c.DeepCopy()
	c.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	if err := r.client.Patch(ctx, c, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("handing claim %s to pod %s: %w", c.Name, pod.Name, err)
	}
	return nil
}
