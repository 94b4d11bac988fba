// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/openkruise"
	"github.com/regatta-sh/regatta/test/rules"
)

// openKruiseCluster has what OpenKruise left in a cluster.
func openKruiseCluster(t *testing.T, file string) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, kruise.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := fakeclient.NewClientBuilder(s).WithStatusSubresource(&corev1.Pod{}, &kruise.CloneSet{})
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		b = b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
	}
	b = b.WithObjects(fakeclient.AddNamespaces(openkruise.Objects(t, s, file)...)...)
	return b.Build()
}

// Taking over what OpenKruise left, before an update, in the middle of it and after it,
// changes no pod, revision or claim: what waits for a hook, the partition, or an image
// that cannot be pulled goes on waiting. Only conditions of failures that are over go.
func TestTakingOverFromOpenKruiseChangesNothing(t *testing.T) {
	e := rules.Engine(t, "")
	for _, stage := range []string{"before", "during", "after"} {
		t.Run(stage, func(t *testing.T) {
			c, events := openKruiseCluster(t, "testdata/openkruise/"+stage+".yaml"), record.NewFakeRecorder(100)
			r := rollout.New(New(Gates{}, false), reconcile.Deps{
				Client: c, Live: c, Events: events, Engine: e, Now: func() time.Time { return time.Date(2026, 11, 22, 10, 52, 0, 0, time.UTC) },
			}, rollout.WithGates(rollout.Gates{EnvFromMetadata: true}))
			all := func() (sets kruise.CloneSetList, pods corev1.PodList, revisions appsv1.ControllerRevisionList, claims corev1.PersistentVolumeClaimList) {
				for _, list := range []client.ObjectList{&sets, &pods, &revisions, &claims} {
					if err := c.List(t.Context(), list); err != nil {
						t.Fatal(err)
					}
				}
				return sets, pods, revisions, claims
			}
			sets, pods, revisions, claims := all()
			for range 3 {
				for i := range sets.Items {
					if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])}); err != nil {
						t.Errorf("CloneSet %s: %v", sets.Items[i].Name, err)
					}
				}
			}
			setsNow, podsNow, revisionsNow, claimsNow := all()
			for _, diff := range []string{cmp.Diff(pods, podsNow), cmp.Diff(revisions, revisionsNow), cmp.Diff(claims, claimsNow)} {
				if diff != "" {
					t.Error(diff)
				}
			}
			for i := range sets.Items {
				was, is := sets.Items[i].Status, setsNow.Items[i].Status
				was.Conditions = nil
				kstatus.RemoveConditions(&is) // these are ours
				if diff := cmp.Diff(was, is); diff != "" {
					t.Errorf("the status of CloneSet %s: %s", sets.Items[i].Name, diff)
				}
			}
			if len(events.Events) > 0 {
				t.Error(<-events.Events)
			}
		})
	}
}
