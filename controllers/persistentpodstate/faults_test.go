// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallForgetsWherePodsAre(t *testing.T) {
	objects := []client.Object{advanced(2), state("apps.kruise.io/v1beta1", nil)}
	for _, name := range []string{"n1", "n2"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"host": name, "rack": "r"}}})
	}
	for name, node := range map[string]string{"db-0": "n1", "db-1": "n2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "s1", Controller: ptr.To(true)}}}}
		pod.Spec.NodeName = node
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		objects = append(objects, pod)
	}
	faultinjection.Scenario{
		Objects: objects,
		Build:   func(b *fake.ClientBuilder) { b.WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID) },
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: e.Client, Live: e.Client, Now: e.Clock}, Options{Finder: scale.NewFinder(e.Client, nil), StartOrdinal: true})
		},
		Requests: faultinjection.RequestFor(objects[1]),
		Watches:  map[string]faultinjection.Changes{"PersistentPodState": faultinjection.ChangesOfSpec, "Node": faultinjection.NoChanges},
	}.Run(t)
}

func TestNoFailedCallLeavesAStatefulSetWithoutItsPersistentPodState(t *testing.T) {
	asking := map[string]string{kruise.AutoGeneratePersistentPodStateKey: "true", kruise.RequiredPersistentTopologyKey: "zone"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		key         string // of the topology that the PersistentPodState has
	}{
		"created": {annotations: asking},
		"changed": {annotations: asking, key: "host"},
		"deleted": {key: "zone"},
	} {
		t.Run(name, func(t *testing.T) {
			set := advanced(1)
			set.Annotations = tc.annotations
			kind := kruise.GroupVersion.WithKind("StatefulSet")
			objects := []client.Object{set}
			if tc.key != "" {
				s := state("apps.kruise.io/v1beta1", nil)
				s.Spec.RequiredPersistentTopology.Keys = []string{tc.key}
				s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)}
				objects = append(objects, s)
			}
			faultinjection.Scenario{
				Objects: objects,
				New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
					return &Generator{Client: e.Client, New: func() client.Object { return &kruise.StatefulSet{} }, Kind: kind}
				},
				Requests: faultinjection.RequestFor(set),
			}.Run(t)
		})
	}
}

// An object whose target has no number of pods says so: it would remember none without a word.
func TestATargetWithoutScaleIsTold(t *testing.T) {
	s := state("game.kruise.io/v1alpha1", func(s *kruise.PersistentPodState) { s.Spec.TargetReference.Kind = "GameServerSet" })
	faultinjection.Scenario{
		Objects: []client.Object{s},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: e.Client, Live: e.Client, Now: e.Clock}, Options{Finder: scale.NewFinder(e.Client, nil)})
		},
		Requests: faultinjection.RequestFor(s),
		Watches:  map[string]faultinjection.Changes{"PersistentPodState": faultinjection.ChangesOfSpec},
	}.RunWait(t, faultinjection.Wait{
		Says: "the target GameServerSet db has no subresource scale",
		Resolve: func(c *faultinjection.Cluster) {
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s), s))
			s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "db"}
			c.Must(c.Client.Update(c.Context(), s))
		},
		Reaches: func(c *faultinjection.Cluster) string {
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(s), s))
			if meta.FindStatusCondition(s.Status.Conditions, failure.ConditionType) != nil || !meta.IsStatusConditionTrue(s.Status.Conditions, kruise.ConditionReady) {
				return fmt.Sprintf("the conditions are %+v", s.Status.Conditions)
			}
			return ""
		},
	})
}
