// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

func pod(state kruise.LifecycleStateType, marks ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Namespace: "shop", UID: "uid", Labels: map[string]string{}}}
	if state != "" {
		p.Labels[kruise.LifecycleStateKey] = string(state)
	}
	for _, m := range marks {
		if m == "node" {
			p.Spec.NodeName = "n1"
		} else if m[0] == 'f' {
			p.Finalizers = append(p.Finalizers, m)
		} else {
			p.Labels[m] = "true"
		}
	}
	return p
}

// hook is held by the label "l" and the finalizer "f".
func hook() *kruise.LifecycleHook {
	return &kruise.LifecycleHook{LabelsHandler: map[string]string{"l": "true"}, FinalizersHandler: []string{"f"}}
}

func TestHooked(t *testing.T) {
	tests := map[string]struct {
		hook     *kruise.LifecycleHook
		pod      *corev1.Pod
		any, all bool
	}{
		"no hook holds nothing, and not all of it is there":   {nil, pod("", "l", "f"), false, false},
		"an empty hook holds nothing, and all of it is there": {&kruise.LifecycleHook{}, pod(""), false, true},
		"no mark":                      {hook(), pod(""), false, false},
		"the label":                    {hook(), pod("", "l"), true, false},
		"the finalizer":                {hook(), pod("", "f"), true, false},
		"both":                         {hook(), pod("", "l", "f"), true, true},
		"other marks":                  {hook(), pod("", "m", "f2"), false, false},
		"the label with another value": {&kruise.LifecycleHook{LabelsHandler: map[string]string{"l": "no"}}, pod("", "l"), false, false},
		"a label of an empty value that the pod does not have": {&kruise.LifecycleHook{LabelsHandler: map[string]string{"l": ""}}, pod(""), false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if some, all := IsHooked(tc.hook, tc.pod), AllHooked(tc.hook, tc.pod); some != tc.any || all != tc.all {
				t.Errorf("hooked %v, all hooked %v; want %v, %v", some, all, tc.any, tc.all)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	const (
		preparingNormal = kruise.LifecycleStatePreparingNormal
		normal          = kruise.LifecycleStateNormal
		preparingUpdate = kruise.LifecycleStatePreparingUpdate
		updatingState   = kruise.LifecycleStateUpdating
		updated         = kruise.LifecycleStateUpdated
		preparingDelete = kruise.LifecycleStatePreparingDelete
	)
	hooks := &kruise.Lifecycle{PreNormal: hook(), InPlaceUpdate: hook(), PreDelete: hook()}
	tests := map[string]struct {
		pod  *corev1.Pod
		l    *kruise.Lifecycle
		f    Facts
		want kruise.LifecycleStateType
	}{
		"a pod without a state gets none":                                     {pod(""), hooks, Facts{true, true}, ""},
		"a new pod waits for a node":                                          {pod(preparingNormal), nil, Facts{}, preparingNormal},
		"a new pod on a node is normal":                                       {pod(preparingNormal, "node"), nil, Facts{}, normal},
		"a new pod without that hook is normal on a node":                     {pod(preparingNormal, "node"), &kruise.Lifecycle{PreDelete: hook()}, Facts{}, normal},
		"a new pod waits for all marks of its hook":                           {pod(preparingNormal, "node", "l"), hooks, Facts{}, preparingNormal},
		"a new pod with all marks is normal, node or not":                     {pod(preparingNormal, "l", "f"), hooks, Facts{}, normal},
		"a normal pod stays so":                                               {pod(normal), hooks, Facts{true, true}, normal},
		"a pod that prepares its update waits":                                {pod(preparingUpdate), hooks, Facts{false, true}, preparingUpdate},
		"a pod that prepares an update it does not need any more was updated": {pod(preparingUpdate), hooks, Facts{true, true}, updated},
		"and is normal if its marks are all there":                            {pod(preparingUpdate, "l", "f"), hooks, Facts{true, true}, normal},
		"and normal without any hooks":                                        {pod(preparingUpdate), nil, Facts{true, true}, normal},
		"a pod is updating until it is complete":                              {pod(updatingState, "l", "f"), hooks, Facts{true, false}, updatingState},
		"a complete pod was updated":                                          {pod(updatingState), hooks, Facts{true, true}, updated},
		"even without that hook, for a moment":                                {pod(updatingState), &kruise.Lifecycle{}, Facts{true, true}, updated},
		"a complete pod with all marks is normal":                             {pod(updatingState, "l", "f"), hooks, Facts{true, true}, normal},
		"a complete pod is normal without any hooks":                          {pod(updatingState), nil, Facts{true, true}, normal},
		"an updated pod waits for all marks":                                  {pod(updated, "l"), hooks, Facts{true, true}, updated},
		"an updated pod with all marks is normal":                             {pod(updated, "l", "f"), hooks, Facts{true, true}, normal},
		"an updated pod without that hook is normal":                          {pod(updated), &kruise.Lifecycle{}, Facts{true, true}, normal},
		"an updated pod without any hooks is normal":                          {pod(updated), nil, Facts{true, true}, normal},
		"a pod that prepares its deletion stays so":                           {pod(preparingDelete, "l", "f"), hooks, Facts{true, true}, preparingDelete},
		"an unknown state stays":                                              {pod("Sleeping", "l", "f"), hooks, Facts{true, true}, "Sleeping"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NextState(tc.pod, tc.l, tc.f); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBeforeUpdate(t *testing.T) {
	hooks := &kruise.Lifecycle{InPlaceUpdate: hook()}
	tests := map[string]struct {
		pod  *corev1.Pod
		l    *kruise.Lifecycle
		want Step
	}{
		"a pod without a state and hooks is updated":     {pod(""), nil, Go},
		"a pod that nothing holds is updated":            {pod(kruise.LifecycleStateNormal), hooks, Go},
		"a pod that any mark holds prepares":             {pod(kruise.LifecycleStateNormal, "l"), hooks, Prepare},
		"a new pod prepares too":                         {pod(kruise.LifecycleStatePreparingNormal, "f"), hooks, Prepare},
		"a pod without a state prepares too":             {pod("", "f"), hooks, Prepare},
		"a pod that prepares waits while any mark holds": {pod(kruise.LifecycleStatePreparingUpdate, "f"), hooks, Wait},
		"a pod that prepared is updated":                 {pod(kruise.LifecycleStatePreparingUpdate), hooks, Go},
		"a pod that is updating is updated again":        {pod(kruise.LifecycleStateUpdating, "l", "f"), hooks, Go},
		"a pod that was updated gets its marks back":     {pod(kruise.LifecycleStateUpdated), hooks, Rehook},
		"unless there is no hook":                        {pod(kruise.LifecycleStateUpdated), nil, Go},
		"a pod that prepares its deletion is refused":    {pod(kruise.LifecycleStatePreparingDelete), hooks, Refuse},
		"an unknown state is refused":                    {pod("Sleeping"), hooks, Refuse},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := BeforeUpdate(tc.pod, tc.l); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBeforeDelete(t *testing.T) {
	hooks := &kruise.Lifecycle{PreDelete: hook()}
	tests := map[string]struct {
		pod  *corev1.Pod
		l    *kruise.Lifecycle
		want Step
	}{
		"without hooks it is deleted":            {pod(kruise.LifecycleStateNormal, "l"), nil, Go},
		"without that hook it is deleted":        {pod(kruise.LifecycleStateNormal, "l"), &kruise.Lifecycle{InPlaceUpdate: hook()}, Go},
		"what nothing holds is deleted":          {pod(kruise.LifecycleStateNormal), hooks, Go},
		"what any mark holds prepares":           {pod(kruise.LifecycleStateNormal, "f"), hooks, Prepare},
		"whatever state it is in":                {pod(kruise.LifecycleStateUpdating, "l"), hooks, Prepare},
		"and waits, told once":                   {pod(kruise.LifecycleStatePreparingDelete, "l"), hooks, Wait},
		"what prepared and is let go is deleted": {pod(kruise.LifecycleStatePreparingDelete), hooks, Go},
		"what prepared is deleted without hooks": {pod(kruise.LifecycleStatePreparingDelete, "l"), nil, Go},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := BeforeDelete(tc.pod, tc.l); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Refreshing comes to an end: no two states turn into each other by themselves.
func TestRefreshSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var marks []string
		for _, m := range []string{"l", "f", "node"} {
			if rapid.Bool().Draw(t, m) {
				marks = append(marks, m)
			}
		}
		p := pod(rapid.SampledFrom([]kruise.LifecycleStateType{
			"", "Sleeping", kruise.LifecycleStatePreparingNormal, kruise.LifecycleStateNormal, kruise.LifecycleStatePreparingUpdate,
			kruise.LifecycleStateUpdating, kruise.LifecycleStateUpdated, kruise.LifecycleStatePreparingDelete,
		}).Draw(t, "state"), marks...)
		var l *kruise.Lifecycle
		if rapid.Bool().Draw(t, "lifecycle") {
			l = &kruise.Lifecycle{}
			if rapid.Bool().Draw(t, "preNormal") {
				l.PreNormal = hook()
			}
			if rapid.Bool().Draw(t, "inPlaceUpdate") {
				l.InPlaceUpdate = hook()
			}
		}
		f := Facts{rapid.Bool().Draw(t, "at target"), rapid.Bool().Draw(t, "complete")}
		for range 4 {
			next := NextState(p, l, f)
			if next == PodState(p) {
				return
			}
			p.Labels[kruise.LifecycleStateKey] = string(next)
		}
		t.Fatalf("it still changes: %s", PodState(p))
	})
}
