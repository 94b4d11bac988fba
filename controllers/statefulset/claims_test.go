// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/openkruise"
)

func withClaims(whenDeleted, whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType) func(*kruise.StatefulSet) {
	return func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &kruise.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: whenDeleted, WhenScaled: whenScaled}
	}
}

// owners are the claims, each with the kinds that own it.
func (w *world) claimOwners() map[string][]string {
	w.t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	if err := w.c.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	out := map[string][]string{}
	for _, c := range list.Items {
		names := []string{}
		for _, o := range c.OwnerReferences {
			names = append(names, o.Kind+" "+o.Name)
			if o.Controller != nil {
				w.t.Errorf("%s of claim %s is its controller", o.Name, c.Name)
			}
		}
		slices.Sort(names)
		out[c.Name] = names
	}
	return out
}

// Claims outlive their pods, and take their owners from the policy: the set where they go
// with it, a pod that is condemned where they go with that.
func TestClaimsHaveTheOwnersThatTheirPolicyWants(t *testing.T) {
	const keep, del = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	e := testEngine(t)
	set := []string{"StatefulSet db"}
	for name, tc := range map[string]struct {
		gate                    bool
		whenDeleted, whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType
		first, condemned        []string
	}{
		"both kept":                 {true, keep, keep, []string{}, []string{}},
		"deleted with the set":      {true, del, keep, set, set},
		"deleted when scaled in":    {true, keep, del, []string{}, []string{"Pod db-1"}},
		"deleted in either case":    {true, del, del, set, []string{"Pod db-1"}},
		"without the gate no owner": {false, del, del, []string{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, e, Gates{AutoDeletePVC: tc.gate}, testSet(2, func(set *kruise.StatefulSet) {
				withClaims(tc.whenDeleted, tc.whenScaled)(set)
				set.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"app": "db"}}} // it never lets go
			}))
			w.settle()
			if diff := cmp.Diff(map[string][]string{"data-db-0": tc.first, "data-db-1": tc.first}, w.claimOwners()); diff != "" {
				t.Error("at first", diff)
			}
			w.change(func(set *kruise.StatefulSet) { set.Spec.Replicas = ptr.To[int32](1) })
			w.settle()
			if diff := cmp.Diff(map[string][]string{"data-db-0": tc.first, "data-db-1": tc.condemned}, w.claimOwners()); diff != "" {
				t.Error("scaled in", diff)
			}
			if p := w.pods()["db-1"]; p == nil || p.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStatePreparingDelete) {
				t.Error("the hook does not hold db-1")
			}
		})
	}
}

// A pod finds the claim of its ordinal again, and is known by its name in DNS.
func TestAPodKeepsItsIdentity(t *testing.T) {
	w := newWorld(t, testEngine(t), Gates{PodIndexLabel: true}, testSet(2, withClaims("", "")))
	w.settle()
	p := w.pods()["db-1"]
	if p == nil || p.Spec.Hostname != "db-1" || p.Spec.Subdomain != "db" || p.Labels[appsv1.StatefulSetPodNameLabel] != "db-1" || p.Labels[appsv1.PodIndexLabel] != "1" {
		t.Fatalf("%+v", p)
	}
	if v := p.Spec.Volumes; len(v) != 1 || v[0].PersistentVolumeClaim.ClaimName != "data-db-1" {
		t.Error(v)
	}
	if err := w.c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if again := w.pods()["db-1"]; again == nil || again.UID == p.UID || again.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-1" {
		t.Errorf("%+v", again)
	}
}

// Taking over what OpenKruise left, before an update, held by its partition and after it,
// changes no pod, revision or claim, and adds no more than our conditions to the status.
func TestTakingOverFromOpenKruiseChangesNothing(t *testing.T) {
	e := testEngine(t)
	for _, stage := range []string{"before", "during", "after"} {
		t.Run(stage, func(t *testing.T) {
			w := newWorld(t, e, Gates{PodIndexLabel: true, AutoDeletePVC: true}, openkruise.Objects(t, testScheme(t), "testdata/openkruise/"+stage+".yaml")...)
			w.now = time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC)
			all := func() (set kruise.StatefulSetList, pods corev1.PodList, revisions appsv1.ControllerRevisionList, claims corev1.PersistentVolumeClaimList) {
				for _, list := range []client.ObjectList{&set, &pods, &revisions, &claims} {
					if err := w.c.List(t.Context(), list); err != nil {
						t.Fatal(err)
					}
				}
				return set, pods, revisions, claims
			}
			sets, pods, revisions, claims := all()
			for range 3 {
				w.reconcile()
			}
			sets2, pods2, revisions2, claims2 := all()
			kstatus.RemoveConditions(&sets2.Items[0].Status) // these are ours
			for what, diff := range map[string]string{
				"status": cmp.Diff(sets.Items[0].Status, sets2.Items[0].Status), "pods": cmp.Diff(pods.Items, pods2.Items),
				"revisions": cmp.Diff(revisions.Items, revisions2.Items), "claims": cmp.Diff(claims.Items, claims2.Items),
			} {
				if diff != "" {
					t.Error(what, diff)
				}
			}
		})
	}
}
