// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// Taking over what OpenKruise left, before an update in place, held by its partition and
// after it, changes no pod, no revision and no status.
func TestTakingOverFromOpenKruiseChangesNothing(t *testing.T) {
	e := testEngine(t)
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kruise.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, stage := range []string{"before", "during", "after"} {
		t.Run(stage, func(t *testing.T) {
			b := fakeclient.NewClientBuilder(s).WithStatusSubresource(&corev1.Pod{}, &kruise.DaemonSet{})
			for _, o := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
				b = b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
			}
			for i := range 4 {
				b = b.WithObjects(testNode(fmt.Sprint("node-", i+1)))
			}
			c, events := b.WithObjects(fakeclient.AddNamespaces(openkruise.Objects(t, s, "testdata/openkruise/"+stage+".yaml")...)...).Build(), record.NewFakeRecorder(100)
			r := rollout.New(standard(), reconcile.Deps{
				Client: c, Live: c, Events: events, Engine: e, Now: func() time.Time { return time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC) },
			}, rollout.WithGates(rollout.Gates{EnvFromMetadata: true}))
			all := func() (sets kruise.DaemonSetList, pods corev1.PodList, revisions appsv1.ControllerRevisionList) {
				for _, list := range []client.ObjectList{&sets, &pods, &revisions} {
					if err := c.List(t.Context(), list); err != nil {
						t.Fatal(err)
					}
				}
				return sets, pods, revisions
			}
			sets, pods, revisions := all()
			if len(pods.Items) != 4 {
				t.Fatalf("there are %d pods", len(pods.Items))
			}
			var written string
			for round := range 3 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[0])}); err != nil {
					t.Error(err)
				}
				now, _, _ := all()
				if round == 0 {
					written = now.Items[0].ResourceVersion
				} else if now.Items[0].ResourceVersion != written {
					t.Errorf("round %d writes the status again", round)
				}
			}
			sets2, pods2, revisions2 := all()
			kstatus.RemoveConditions(&sets2.Items[0].Status) // these are ours
			sets2.ResourceVersion, sets2.Items[0].ResourceVersion = sets.ResourceVersion, sets.Items[0].ResourceVersion
			for what, diff := range map[string]string{
				"sets": cmp.Diff(sets, sets2), "pods": cmp.Diff(pods, pods2), "revisions": cmp.Diff(revisions, revisions2),
			} {
				if diff != "" {
					t.Error(what, diff)
				}
			}
			if len(events.Events) > 0 {
				t.Error(<-events.Events)
			}
		})
	}
}
