package cloneset

import (
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// relevant says whether a change of a pod can change what its CloneSet does
// (CS-18). Any other, such as a probe's time, needs no reconcile.
func relevant(before, after *corev1.Pod, resizes bool) bool {
	if resizes || before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) {
		return true
	}
	if !reflect.DeepEqual(before.Finalizers, after.Finalizers) || !reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		return true
	}
	if (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || before.Status.Phase != after.Status.Phase {
		return true
	}
	if before.Spec.NodeName != after.Spec.NodeName {
		return true
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReady, kruise.InPlaceUpdateReady} {
		a, b := inplace.Condition(before, t), inplace.Condition(after, t)
		if (a == nil) != (b == nil) || (a != nil && a.Status != b.Status) {
			return true
		}
	}
	return inplace.Incomplete(before) != "" // what it waits for may have come
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
