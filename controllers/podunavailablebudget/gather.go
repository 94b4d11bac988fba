// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

// state is what one reconcile reads of a budget. Its pods are shared with the cache, so callers must
// not change them.
type state struct {
	budget   *policy.PodUnavailableBudget
	pods     map[string]*corev1.Pod
	active   []*corev1.Pod
	expected int32
}

// gatherState finds the pods of a budget, and how many there should be (PUB-04).
func (r *Reconciler) gatherState(ctx context.Context, b *policy.PodUnavailableBudget) (*state, error) {
	w := &state{budget: b, pods: map[string]*corev1.Pod{}}
	var err error
	if b.Spec.TargetReference != nil {
		err = r.ofTarget(ctx, w, targetReference(b))
	} else {
		err = r.ofSelector(ctx, w)
	}
	return w, err
}

// protectTotalReplicas is the number of pods that the budget itself sets, 0 if it sets none.
func protectTotalReplicas(b *policy.PodUnavailableBudget) int32 {
	if n := b.Spec.ProtectTotalReplicas; n != nil {
		return *n
	}
	n, err := strconv.ParseInt(b.Annotations[v1alpha1.BudgetProtectTotalReplicasKey], 10, 32)
	if err != nil {
		return 0
	}
	return int32(max(n, 0))
}

func (w *state) addPods(pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		w.pods[pod.Name] = pod
		if availability.IsActive(pod) {
			w.active = append(w.active, pod)
		}
	}
}

func (r *Reconciler) ofSelector(ctx context.Context, w *state) error {
	selector, err := r.finder.selectors.selectorOf(w.budget)
	if err != nil {
		return err
	}
	if err := r.bySelector(ctx, w, selector); err != nil {
		return err
	}
	if w.expected = protectTotalReplicas(w.budget); w.expected > 0 {
		return nil
	}
	counted := map[types.UID]bool{}
	workloads := map[scale.Reference]bool{}
	for _, pod := range w.active {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || counted[owner.UID] {
			continue
		}
		counted[owner.UID] = true
		top, err := r.workloads.TopWorkload(ctx, pod.Namespace, owner)
		if err != nil {
			return err
		}
		if top == nil || workloads[*top] {
			continue
		}
		workloads[*top] = true
		n, err := r.workloadReplicas(ctx, pod.Namespace, *top)
		if err != nil {
			return err
		}
		w.expected += n
	}
	return nil
}

// workloadReplicas returns the replicas of a workload: 0 if it is gone or being deleted, and -1 if its
// kind has no scale (PUB-04).
func (r *Reconciler) workloadReplicas(ctx context.Context, namespace string, ref scale.Reference) (int32, error) {
	found, err := r.workloads.FindWorkload(ctx, namespace, ref)
	switch {
	case errors.Is(err, scale.ErrNoScale):
		return -1, nil
	case err != nil:
		return 0, err
	case found == nil || found.Terminating:
		return 0, nil
	}
	return found.Replicas, nil
}

func (r *Reconciler) bySelector(ctx context.Context, w *state, selector labels.Selector) error {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(w.budget.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	w.addPods(list.Items)
	return nil
}

func (r *Reconciler) ofTarget(ctx context.Context, w *state, ref scale.Reference) error {
	said := protectTotalReplicas(w.budget)
	found, err := r.workloads.FindWorkload(ctx, w.budget.Namespace, ref)
	if errors.Is(err, scale.ErrNoScale) && said > 0 {
		w.expected = said
		return r.byReference(ctx, w, ref)
	}
	if err != nil {
		return fmt.Errorf("finding spec.targetRef %s %s: %w", ref.Kind, ref.Name, err)
	}
	gone := found == nil || found.Terminating || found.Replicas == 0
	switch {
	case gone && said == 0:
		return nil
	case found == nil:
		w.expected = said
		return r.byReference(ctx, w, ref)
	}
	if w.expected = said; said == 0 {
		w.expected = found.Replicas
	}
	owners := []types.UID{found.UID}
	if ref.GroupKind() == (schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}) {
		if owners, err = r.replicaSets(ctx, w.budget.Namespace, found.UID); err != nil {
			return err
		}
	}
	for _, uid := range owners {
		list := &corev1.PodList{}
		if err := r.Client.List(ctx, list, client.InNamespace(w.budget.Namespace), client.MatchingFields{rollout.OwnerIndex: string(uid)}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		w.addPods(list.Items)
	}
	if len(w.pods) > 0 || found.Selector == "" {
		return nil
	}
	// The owner of the pods may be another object that the workload owns.
	selector, err := labels.Parse(found.Selector)
	if err != nil {
		return fmt.Errorf("reading status.selector of the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return r.bySelector(ctx, w, selector)
}

func (r *Reconciler) replicaSets(ctx context.Context, namespace string, deployment types.UID) ([]types.UID, error) {
	list := &appsv1.ReplicaSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{rollout.OwnerIndex: string(deployment)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	out := make([]types.UID, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].UID
	}
	return out, nil
}

// byReference finds the pods of a workload that cannot be read.
func (r *Reconciler) byReference(ctx context.Context, w *state, ref scale.Reference) error {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(w.budget.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	var pods []corev1.Pod
	for i := range list.Items {
		owner := metav1.GetControllerOfNoCopy(&list.Items[i])
		if owner == nil || targetKey(scale.NewReference(owner)) != targetKey(ref) {
			continue
		}
		pods = append(pods, list.Items[i])
	}
	w.addPods(pods)
	return nil
}
