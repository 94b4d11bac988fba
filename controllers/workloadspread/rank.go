// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// patchDeletionCosts applies WS-07: pods of later subsets, and pods beyond the limits of their subsets, are deleted first at
// scale-in.
func (t *reconcileRound) patchDeletionCosts(ctx context.Context) error {
	if !spread.UsesCosts(t.w) {
		return nil
	}
	latest, err := t.latestVersion(ctx)
	if err != nil {
		return err
	}
	n := len(t.w.Spec.Subsets)
	groups := map[string]map[int][]*corev1.Pod{}
	for _, pod := range t.pods {
		if !availability.IsActive(pod) {
			continue
		}
		version := t.r.version.PodVersion(t.w, pod)
		if groups[version] == nil {
			groups[version] = map[int][]*corev1.Pod{}
		}
		groups[version][t.part[pod.UID]] = append(groups[version][t.part[pod.UID]], pod)
	}
	var acts []func() error
	cost := func(pod *corev1.Pod, value int) {
		text := strconv.Itoa(value)
		if has := pod.Annotations[kruise.PodDeletionCostKey]; has == text || has == "" && value == 0 {
			return
		}
		acts = append(acts, func() error {
			changed := pod.DeepCopy()
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, kruise.PodDeletionCostKey, text)
			if err := t.r.Client.Patch(ctx, changed, client.MergeFrom(pod)); client.IgnoreNotFound(err) != nil {
				t.r.recordEventOnce(t.w, kruise.WorkloadSpreadPatchPodDeletionCostFailedReason, string(pod.UID), fmt.Sprintf("Pod %s: %v", pod.Name, err))
				return fmt.Errorf("writing the deletion cost of pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
	replicas := 0
	if t.target != nil {
		replicas = t.target.Replicas
	}
	shares := spread.CostsOf(t.w, replicas)
	for version, parts := range groups {
		for i, pods := range parts {
			if i < 0 {
				for _, pod := range pods {
					cost(pod, -100*(n+1))
				}
				continue
			}
			place := i
			if version != latest {
				place = n - 1 - i
			}
			over := 0
			if t.limits[i] != nil {
				over = max(len(pods)-*t.limits[i], 0)
			}
			slices.SortStableFunc(pods, compareDeletionOrder)
			for j, pod := range pods {
				switch {
				case j < over:
					cost(pod, -100*(place+1))
				case version != latest: // an old version leaves subsets in the order in which the newest one fills them
					cost(pod, spread.PlainCost(t.w, place))
				default:
					cost(pod, shares.CostOf(place, len(pods)-j))
				}
			}
		}
	}
	return batch.RunParallel(t.r.writes, acts)
}

// latestVersion returns the version of which the workload creates new pods: the update revision of a CloneSet, or the newest ReplicaSet of
// a Deployment. If the workload does not report it, for example because its controller has not seen it yet, the result is that of the newest pod.
func (t *reconcileRound) latestVersion(ctx context.Context) (string, error) {
	ref := t.w.Spec.TargetReference
	if t.target == nil || len(t.pods) == 0 || !t.r.version.CountSeparately(t.w) {
		return kruise.WorkloadSpreadVersionIgnored, nil
	}
	said := ""
	switch (schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)).GroupKind() {
	case kruise.GroupVersion.WithKind("CloneSet").GroupKind():
		set := &kruise.CloneSet{}
		if err := t.r.Client.Get(ctx, types.NamespacedName{Namespace: t.w.Namespace, Name: ref.Name}, set); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading the update revision of CloneSet %s: %w", ref.Name, err)
		}
		said = revision.ShortHash(set.Status.UpdateRevision)
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		sets, err := t.listReplicaSets(ctx)
		if err != nil {
			return "", err
		}
		number := -1
		for _, set := range sets {
			if n, err := strconv.Atoi(set.Annotations[DeploymentRevisionKey]); err == nil && n > number {
				said, number = set.Labels[appsv1.DefaultDeploymentUniqueLabelKey], n
			}
		}
	}
	if said != "" {
		return said, nil
	}
	newest := slices.MaxFunc(t.pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return t.r.version.PodVersion(t.w, newest), nil
}

// compareDeletionOrder orders the pods of a subset: those whose deletion costs least come first.
func compareDeletionOrder(a, b *corev1.Pod) int {
	bound := func(p *corev1.Pod) int {
		if p.Spec.NodeName == "" {
			return 0
		}
		return 1
	}
	phase := func(p *corev1.Pod) int {
		return map[corev1.PodPhase]int{corev1.PodPending: 0, corev1.PodUnknown: 1, corev1.PodRunning: 2}[p.Status.Phase]
	}
	ready := func(p *corev1.Pod) int {
		if availability.IsRunningAndReady(p) {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(bound(a), bound(b)), cmp.Compare(phase(a), phase(b)), cmp.Compare(ready(a), ready(b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}
