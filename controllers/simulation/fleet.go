// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// ClusterState is the state of a cluster when a simulation begins.
type ClusterState struct {
	// Workload is the workload that rolls out, and Kind makes its adapter.
	Workload  client.Object
	Kind      NewKindFunc
	Pods      []*corev1.Pod
	Nodes     []*corev1.Node
	Revisions []*appsv1.ControllerRevision
	Claims    []*corev1.PersistentVolumeClaim
	// Budgets are the budgets in the namespace of the workload. Namespace is that namespace,
	// for its labels; nil if it has none.
	Budgets   []*policy.PodUnavailableBudget
	Namespace *corev1.Namespace
	// Others are pods of other workloads that the budgets cover too, and these
	// workloads. They do not change.
	Others []client.Object
	// Room is how many pods each node is to have, which decides where new pods are scheduled.
	// If it is nil, each node is to have as many as it has.
	Room map[string]int
}

// AbsentNodes returns the names of the nodes that pods of the state are on, or are to be on, and that the state does not have. A simulation takes
// each for ready, and for as new as the simulation.
func (f ClusterState) AbsentNodes() []string {
	absent := map[string]bool{}
	for _, p := range f.Pods {
		absent[cmp.Or(p.Spec.NodeName, nodefit.NodeOf(p))] = true
	}
	delete(absent, "")
	for _, n := range f.Nodes {
		delete(absent, n.Name)
	}
	return slices.Sorted(maps.Keys(absent))
}

// NewKindFunc makes the adapter of a kind, with the feature gates that are on.
type NewKindFunc func(on func(featuregate.Feature) bool) (rollout.Kind, error)

// GrowFleet lets the pods of a workload start on nodes without pods, with the
// built-in policies alone and a day before the given time, so that all are available at that time.
// Budgets do not apply to that.
func GrowFleet(ctx context.Context, builtin fs.FS, f ClusterState, at time.Time, seed int64, opts ...Option) (ClusterState, error) {
	bare := f
	bare.Budgets = nil
	s, err := New(builtin, nil, bare, at.Add(-24*time.Hour), append(opts, WithReadyAfter(0), WithSeed(seed))...)
	if err != nil {
		return f, err
	}
	defer s.Close()
	report, err := s.Run(ctx)
	if err != nil {
		return f, err
	}
	if report.End.How != Done || !report.End.At.Before(at) {
		last := report.Steps[len(report.Steps)-1]
		return f, fmt.Errorf("growing a fleet: its pods do not become available: %s%s", last.Message, last.Error)
	}
	f.Workload, f.Pods = s.cluster.workload, s.cluster.sortedPods()
	f.Revisions, f.Claims = listSorted[*appsv1.ControllerRevision](s.cluster.objects), listSorted[*corev1.PersistentVolumeClaim](s.cluster.objects)
	return f, nil
}
