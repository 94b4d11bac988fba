// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// gatherPods reads the pods of the workload.
func (t *reconcileRound) gatherPods(ctx context.Context) error {
	ref := t.w.Spec.TargetReference
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	list := func(in ...client.ListOption) error {
		found := &corev1.PodList{}
		if err := t.r.Client.List(ctx, found, append(in, client.InNamespace(t.w.Namespace), client.UnsafeDisableDeepCopy)...); err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		for i := range found.Items {
			if pod := &found.Items[i]; spread.SelectsPod(t.w, pod) {
				t.pods = append(t.pods, pod)
			}
		}
		return nil
	}
	switch {
	case kind == schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		sets, err := t.listReplicaSets(ctx)
		if err != nil {
			return err
		}
		for i := range sets {
			if err := list(client.MatchingFields{rollout.OwnerIndex: string(sets[i].UID)}); err != nil {
				return err
			}
		}
	case slices.Contains(spread.SupportedKinds(), kind):
		if err := list(client.MatchingFields{rollout.OwnerIndex: string(t.target.UID)}); err != nil {
			return err
		}
	default: // a kind of the white list: other objects may be between the workload and its pods
		if err := list(); err != nil {
			return err
		}
		t.pods = slices.DeleteFunc(t.pods, func(pod *corev1.Pod) bool {
			w, err := t.r.targets.FindSpread(ctx, t.w.Namespace, pod)
			return err != nil || w == nil || w.UID != t.w.UID
		})
	}
	slices.SortFunc(t.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// listReplicaSets lists the ReplicaSets of the Deployment.
func (t *reconcileRound) listReplicaSets(ctx context.Context) (out []*appsv1.ReplicaSet, err error) {
	list := &appsv1.ReplicaSetList{}
	if err := t.r.Client.List(ctx, list, client.InNamespace(t.w.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for i := range list.Items {
		if ref := metav1.GetControllerOfNoCopy(&list.Items[i]); ref != nil && ref.UID == t.target.UID {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}
