// SPDX-License-Identifier: Apache-2.0

// Package spreads puts new pods into subsets of their WorkloadSpread (WS-02, WS-03, WS-10), and
// records pods that are deleted (WS-04).
package spreads

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

const (
	// The API server cannot evaluate whether a chain of owners leads to a spread: the owners of pods may
	// be of other groups, of kinds in the white list.
	owned = "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && " +
		"(o.kind in ['ReplicaSet', 'StatefulSet', 'Job', 'CloneSet'] || !(o.apiVersion.split('/')[0] in ['v1', 'apps', 'batch', 'apps.kruise.io'])))"
	marked = "oldObject.metadata.?annotations.orValue({}).exists(k, k == 'apps.kruise.io/matched-workloadspread')"
)

func requiredGates() []featuregate.Feature { return []featuregate.Feature{features.WorkloadSpread} }

// New makes the step for pods that are created.
func New(targets *spread.Targets, book *spread.Recorder) pod.MutatingStep {
	return pod.MutatingStep{
		Place: pod.WorkloadSpread, Name: "finding the subset of a WorkloadSpread", Gates: requiredGates(),
		Match: match.Created{
			Name: "spread", Namespaces: match.WithSpreads,
			Conditions: []admissionv1.MatchCondition{{Name: "owned-by-a-workload-that-may-be-spread", Expression: owned}},
		},
		Mutate: func(ctx context.Context, c *pod.Creation) (bool, error) {
			w, err := targets.FindSpread(ctx, c.Namespace, c.Pod)
			if err != nil || w == nil {
				return false, err
			}
			at, err := book.Create(ctx, w, c.Pod, c.DryRun)
			if err != nil || at == nil {
				return false, err
			}
			return true, spread.InjectSubset(w, at, c.Pod)
		},
	}
}

// NewRecords makes the step for pods that are deleted.
func NewRecords(targets *spread.Targets, book *spread.Recorder) pod.ValidatingStep {
	return pod.ValidatingStep{
		Place: pod.SpreadRecords, Name: "noting a pod of a WorkloadSpread that goes", Gates: requiredGates(),
		Match: []match.Stored{{Operations: []string{protection.Delete, protection.Evict}, Namespaces: match.WithSpreads, Conditions: []string{marked}}},
		Validate: func(ctx context.Context, r *pod.Request) admission.Response {
			op := r.Asked.Request.Operation
			if op != protection.Delete && op != protection.Evict || r.Asked.Request.DryRun || r.Stored == nil || !availability.IsActive(r.Stored) || metav1.GetControllerOfNoCopy(r.Stored) == nil {
				return admission.Allowed("")
			}
			mark := spread.MarkOf(r.Stored)
			if mark == nil {
				return admission.Allowed("")
			}
			all, err := targets.ListSpreads(ctx, r.Stored.Namespace)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			for _, w := range all {
				if w.Name != mark.Name || spread.PodOrdinal(w, r.Stored) != nil {
					continue
				}
				if err := book.Delete(ctx, w, r.Stored, mark); err != nil {
					return admission.Errored(http.StatusBadRequest, fmt.Errorf("noting that pod %s goes: %w", r.Stored.Name, err))
				}
			}
			return admission.Allowed("")
		},
	}
}
