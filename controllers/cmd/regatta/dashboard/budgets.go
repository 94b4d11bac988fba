// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// budgetRow is a PodUnavailableBudget.
type budgetRow struct {
	Type      string `json:"type"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Allowed   int32  `json:"allowed"`
	Available int32  `json:"available"`
	Desired   int32  `json:"desired"`
	Total     int32  `json:"total"`
	// Seen is false while the controller has not seen the newest spec.
	Seen       bool               `json:"seen"`
	Uses       []budgetUse        `json:"uses,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// budgetUse is a pod that was allowed to become unavailable.
type budgetUse struct {
	Pod string `json:"pod"`
	At  int64  `json:"at"` // in milliseconds since 1970
	// Purpose is disruption for a deletion or an eviction, or update for an update in place.
	Purpose string `json:"purpose"`
}

func (c *collector) openBudgets(ctx context.Context) page {
	return newGroupPage(c.startGroup(ctx, &c.budgets, func(feed *changeFeed) []*watcher {
		return c.openWatchers(feed, watchedResource{policyv1beta1.GroupVersion.WithResource("podunavailablebudgets"), false})
	}), collectBudgets)
}

func collectBudgets(g *watchGroup) []row {
	return g.cache.rowsOf(listObjects[*unstructured.Unstructured](g.watchers[0]), func(o *unstructured.Unstructured) row {
		id := "budget/" + o.GetNamespace() + "/" + o.GetName()
		b := &policyv1beta1.PodUnavailableBudget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, b); err != nil {
			return newProblemRow(id, err)
		}
		return row{id, newBudgetRow(b)}
	})
}

func newBudgetRow(b *policyv1beta1.PodUnavailableBudget) budgetRow {
	st := &b.Status
	out := budgetRow{
		Type: "budget", Namespace: b.Namespace, Name: b.Name, Allowed: st.UnavailableAllowed, Available: st.CurrentAvailable,
		Desired: st.DesiredAvailable, Total: st.TotalReplicas, Seen: st.ObservedGeneration >= b.Generation, Conditions: st.Conditions,
	}
	for purpose, pods := range map[string]map[string]metav1.Time{"disruption": st.DisruptedPods, "update": st.UnavailablePods} {
		for pod, at := range pods {
			out.Uses = append(out.Uses, budgetUse{pod, at.UnixMilli(), purpose})
		}
	}
	slices.SortFunc(out.Uses, func(a, b budgetUse) int { return strings.Compare(a.Pod+a.Purpose, b.Pod+b.Purpose) })
	return out
}
