// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/overlay"
)

// A write that the cache has not shown for too long is waited for as long as the API server
// has it, unless the gate ForceDeleteTimeoutExpectationGate gives it up.
func TestAWriteThatTheCacheDoesNotShow(t *testing.T) {
	const owner = types.UID("owner")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "pod"}}
	for _, tc := range []struct {
		name   string
		gate   bool
		there  []client.Object
		waited bool
	}{
		{name: "is waited for", there: []client.Object{pod}, waited: true},
		{name: "is given up with the gate", gate: true, there: []client.Object{pod}},
		{name: "is over when its pod is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			leaks := 0
			c := &Controller{
				gates: Gates{DropLateExpectations: tc.gate}, Deps: reconcile.Deps{Live: fake.NewClientBuilder().WithObjects(tc.there...).Build()},
				overlay: overlay.New(func() time.Time { return now }), leaks: func(string, string) { leaks++ },
			}
			c.overlay.RecordCreated(owner, pod)
			now = now.Add(6 * time.Minute)
			late := func() []*corev1.Pod {
				_, late := c.overlay.ApplyWrites(owner, c.overlay.TakeMark(), nil, 5*time.Minute)
				return late
			}
			r := &Round{c: c, Workload: &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: owner}}}
			if err := r.catchUp(t.Context(), late()); err != nil {
				t.Fatal(err)
			}
			if got := len(late()) > 0; got != tc.waited || leaks != 1 || r.again.after != 10*time.Second {
				t.Errorf("it is waited for: %t; %d leaks; again after %s", got, leaks, r.again.after)
			}
		})
	}
}
