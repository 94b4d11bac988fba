// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/controllers/workload/ordinals"
)

// desiredOrdinals are the ordinals of a set (ASTS-01).
func (k *Kind) desiredOrdinals(set *kruise.StatefulSet) ordinals.Range {
	start := 0
	if k.Gates.StartOrdinal && set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	return ordinals.NewRange(start, desiredReplicas(set), set.Spec.ReserveOrdinals)
}

func podName(set *kruise.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// ordinalOf returns the ordinal of a member of a set (ASTS-02); false for pods with other names.
func ordinalOf(set *kruise.StatefulSet, pod string) (int, bool) {
	n, ok := facts.PodOrdinal(pod)
	return n, ok && podName(set, n) == pod
}

func desiredReplicas(set *kruise.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

var _ invariant.KindWithWantedPods = &Kind{}

// WantsPod implements invariant.KindWithWantedPods: a pod that no ordinal wants is to be deleted.
func (k *Kind) WantsPod(o client.Object, pod *corev1.Pod) bool {
	set := o.(*kruise.StatefulSet)
	n, ok := ordinalOf(set, pod.Name)
	return ok && k.desiredOrdinals(set).HasOrdinal(n)
}
