// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// phase is the state of a workload in a word. The browser has a text and a colour for each.
type phase string

const (
	phaseComplete phase = "complete"
	phaseUpdating phase = "updating"
	// phaseHeld is of a rollout that a policy holds.
	phaseHeld   phase = "held"
	phasePaused phase = "paused"
	// phaseLate is of a rollout that has exceeded its deadline.
	phaseLate phase = "late"
	// phaseFailing is of a workload with a condition that says what fails.
	phaseFailing phase = "failing"
	// phaseManual is of a rollout that does not complete by itself.
	phaseManual phase = "manual"
	// phaseUnseen is of a workload whose newest spec its controller has not seen yet.
	phaseUnseen phase = "unseen"
	// phaseUnreadable is of an object whose fields cannot be read.
	phaseUnreadable phase = "unreadable"
)

// workloadRow is a workload in the list of workloads, and the head of its own page.
type workloadRow struct {
	Type      string `json:"type"`
	Kind      string `json:"kind"`
	Group     string `json:"group"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Phase     phase  `json:"phase"`
	// Notes are what holds the rollout and what fails.
	Notes     []string `json:"notes,omitempty"`
	Strategy  string   `json:"strategy,omitempty"`
	Revision  string   `json:"revision,omitempty"`
	Wanted    int      `json:"wanted"`
	Pods      int      `json:"pods"`
	Available int      `json:"available"`
	Target    int      `json:"target"`
	Updated   int      `json:"updated"`
	Done      int      `json:"done"`
	Created   int64    `json:"created"` // in milliseconds since 1970
}

// resourceName names the resource of a kind in addresses, such as clonesets.apps.kruise.io.
func resourceName(k edit.Kind) string { return k.GroupVersionResource.GroupResource().String() }

func (c *collector) openWorkloads(ctx context.Context) page {
	return newGroupPage(c.startGroup(ctx, &c.workloads, func(feed *changeFeed) []*watcher {
		var resources []watchedResource
		for _, k := range rollout.ListKinds() {
			resources = append(resources, watchedResource{k.GroupVersionResource, k.ClusterScoped})
		}
		return c.openWatchers(feed, resources...)
	}), collectWorkloads)
}

func collectWorkloads(g *watchGroup) []row {
	var objects []*unstructured.Unstructured
	kindOf := map[*unstructured.Unstructured]edit.Kind{}
	for i, k := range rollout.ListKinds() {
		for _, o := range listObjects[*unstructured.Unstructured](g.watchers[i]) {
			objects, kindOf[o] = append(objects, o), k
		}
	}
	return g.cache.rowsOf(objects, func(o *unstructured.Unstructured) row {
		w := newWorkloadRow(kindOf[o], o)
		return row{strings.Join([]string{"workload", w.Resource, w.Namespace, w.Name}, "/"), w}
	})
}

// newWorkloadRow describes an object. Objects of a UnitedDeployment and others that a controller owns are listed as well.
func newWorkloadRow(k edit.Kind, object *unstructured.Unstructured) workloadRow {
	w := workloadRow{
		Type: "workload", Kind: k.Kind, Group: k.Group, Resource: resourceName(k), Namespace: object.GetNamespace(), Name: object.GetName(),
		Created: object.GetCreationTimestamp().UnixMilli(),
	}
	state, err := rollout.ReadState(k, object)
	if err != nil {
		w.Phase, w.Notes = phaseUnreadable, []string{err.Error()}
		return w
	}
	w.Phase, w.Notes, w.Strategy, w.Revision = phaseOf(state), state.Notes, state.Strategy, state.UpdateRevision
	if state.Endless != "" && !state.IsComplete() {
		w.Notes = append(w.Notes, state.Endless)
	}
	if state.Deadline != "" {
		w.Notes = append(w.Notes, state.Deadline)
	}
	w.Wanted, w.Pods, w.Available, w.Target, w.Updated, w.Done = state.Wanted, state.Pods, state.Available, state.Target, state.Updated, state.Done
	return w
}

// isHold is true for conditions that say that a policy holds something. The others among the notes of a state say what fails.
func isHold(c kinds.Condition) bool {
	holds := []string{kruise.UpdateHeld, string(kruise.UnitedDeploymentAllocationHeld), string(kruise.StatefulSetVolumeClaimsDiffer)}
	return c.Status == corev1.ConditionTrue && slices.Contains(holds, c.Type)
}

// phaseOf says which phase a state is: the one that a user has to know of first.
func phaseOf(s rollout.State) phase {
	failures, held := len(s.Notes), false
	if s.Paused {
		failures-- // it is a note
	}
	for _, c := range s.Conditions {
		if isHold(c) {
			held = true
			failures--
		}
	}
	switch {
	case !s.Observed:
		return phaseUnseen
	case s.Deadline != "" && !s.IsComplete():
		return phaseLate
	case failures > 0:
		return phaseFailing
	case s.IsComplete():
		return phaseComplete
	case held:
		return phaseHeld
	case s.Paused:
		return phasePaused
	case s.Endless != "":
		return phaseManual
	}
	return phaseUpdating
}

// findRolloutKind finds the kind of a resource in the address of a page.
func findRolloutKind(r *http.Request) (edit.Kind, error) {
	for _, k := range rollout.ListKinds() {
		if resourceName(k) == r.PathValue("resource") {
			return k, nil
		}
	}
	return edit.Kind{}, fmt.Errorf("%q is no resource that has rollouts", r.PathValue("resource"))
}
