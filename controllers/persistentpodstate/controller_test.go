// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// world is a cluster in memory, since its API server has no index of pods by their owners.
type world struct {
	*testing.T
	api client.WithWatch
	r   *Reconciler
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	api := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(objects...).
		WithStatusSubresource(&kruise.PersistentPodState{}, &corev1.Pod{}).
		WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID).Build()
	for _, name := range []string{"n1", "n2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"host": name, "zone": "z-" + name}}}
		if err := api.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	return &world{T: t, api: api, r: New(reconcile.Deps{Client: api, Live: api}, Options{Finder: scale.NewFinder(api, nil), StartOrdinal: true})}
}

func advanced(replicas int32) *kruise.StatefulSet {
	return &kruise.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "s1"}, Spec: kruise.StatefulSetSpec{Replicas: &replicas}}
}

func native(replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "s1"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
}

func state(apiVersion string, edit func(*kruise.PersistentPodState)) *kruise.PersistentPodState {
	s := &kruise.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Generation: 3}}
	s.Spec.TargetReference = kruise.TargetReference{APIVersion: apiVersion, Kind: "StatefulSet", Name: "db"}
	s.Spec.RequiredPersistentTopology = &kruise.NodeTopologyTerm{Keys: []string{"host", "rack"}}
	if edit != nil {
		edit(s)
	}
	return s
}

// pod makes a pod of the set that is ready on a node, or not while node begins with a !.
func (w *world) pod(name, node string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Annotations: map[string]string{"players": "3"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "s1", Controller: ptr.To(true)}},
	}}
	ready := corev1.ConditionTrue
	if strings.HasPrefix(node, "!") {
		node, ready = node[1:], corev1.ConditionFalse
	}
	pod.Spec.NodeName = node
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
	if err := w.api.Create(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

// gone deletes pods.
func (w *world) gone(names ...string) {
	w.Helper()
	for _, name := range names {
		if err := w.api.Delete(w.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) round() *kruise.PersistentPodState {
	w.Helper()
	key := types.NamespacedName{Namespace: "shop", Name: "db"}
	if _, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		w.Fatal(err)
	}
	s := &kruise.PersistentPodState{}
	if err := w.api.Get(w.Context(), key, s); err != nil {
		w.Fatal(err)
	}
	return s
}

// remembers checks what is remembered, as "db-0=n1 db-1=n2".
func (w *world) remembers(want string) *kruise.PersistentPodState {
	w.Helper()
	s := w.round()
	var got []string
	for _, name := range slices.Sorted(maps.Keys(s.Status.PodStates)) {
		got = append(got, name+"="+s.Status.PodStates[name].NodeName)
	}
	if strings.Join(got, " ") != want {
		w.Errorf("it remembers %v, want %q", got, want)
	}
	return s
}

func TestPodsThatAreReadyAreRemembered(t *testing.T) {
	w := newWorld(t, advanced(3), state("apps.kruise.io/v1beta1", func(s *kruise.PersistentPodState) {
		s.Spec.PreferredPersistentTopology = []kruise.PreferredTopologyTerm{{Weight: 1, Preference: kruise.NodeTopologyTerm{Keys: []string{"zone"}}}}
		s.Spec.PersistentPodAnnotations = []kruise.PersistentPodAnnotation{{Key: "players"}, {Key: "other"}}
	}))
	w.pod("db-0", "n1")
	w.pod("db-1", "!n1")
	w.pod("db-2", "n9") // the node is gone
	s := w.remembers("db-0=n1")
	got := s.Status.PodStates["db-0"]
	if !maps.Equal(got.NodeTopologyLabels, map[string]string{"host": "n1", "zone": "z-n1"}) || !maps.Equal(got.Annotations, map[string]string{"players": "3"}) || s.Status.ObservedGeneration != 3 {
		t.Errorf("got %+v", s.Status)
	}
	if again := w.round(); again.ResourceVersion != s.ResourceVersion {
		t.Error("the same is written twice")
	}
	w.gone("db-0")
	w.remembers("db-0=n1")
	w.pod("db-0", "n2")
	w.remembers("db-0=n2")
}

func TestWhatIsForgotten(t *testing.T) {
	all := func(w *world) {
		for name, node := range map[string]string{"db-0": "n1", "db-1": "n2", "db-2": "n1", "db-5": "n1"} {
			w.pod(name, node)
		}
		w.remembers("db-0=n1 db-1=n2 db-2=n1 db-5=n1")
		w.gone("db-1", "db-2", "db-5")
	}
	t.Run("pods that are scaled in, once they are gone", func(t *testing.T) {
		w := newWorld(t, advanced(2), state("apps.kruise.io/v1beta1", nil))
		all(w)
		w.remembers("db-0=n1 db-1=n2")
	})
	t.Run("reserved ordinals", func(t *testing.T) {
		set := advanced(2)
		set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromString("1-4")}
		w := newWorld(t, set, state("apps.kruise.io/v1beta1", nil))
		all(w)
		w.remembers("db-0=n1 db-5=n1")
	})
	t.Run("ordinals of a native StatefulSet that begins later", func(t *testing.T) {
		set := native(2)
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1}
		w := newWorld(t, set, state("apps/v1", nil))
		all(w)
		w.remembers("db-0=n1 db-1=n2 db-2=n1") // the pod of db-0 is still there
	})
	t.Run("nothing, by policy", func(t *testing.T) {
		w := newWorld(t, advanced(1), state("apps.kruise.io/v1alpha1", func(s *kruise.PersistentPodState) {
			s.Spec.PersistentPodStateRetentionPolicy = kruise.PersistentPodStateRetentionPolicyWhenDeleted
		}))
		all(w)
		w.remembers("db-0=n1 db-1=n2 db-2=n1 db-5=n1")
	})
	t.Run("all, when the workload is gone", func(t *testing.T) {
		set := advanced(3)
		w := newWorld(t, set, state("apps.kruise.io/v1beta1", nil))
		all(w)
		if err := w.api.Delete(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		w.remembers("")
	})
}

func TestACacheThatIsBehindForgetsNothing(t *testing.T) {
	w := newWorld(t, advanced(3), state("apps.kruise.io/v1beta1", nil))
	w.pod("db-0", "n1")
	w.remembers("db-0=n1")
	empty := fakeclient.NewClientBuilder(apiserver.Scheme(t)).Build()
	w.r.Finder = scale.NewFinder(empty, nil)
	w.remembers("db-0=n1")
}

func TestTakingOverFromOpenKruise(t *testing.T) {
	var theirs *kruise.PersistentPodState
	var set *kruise.StatefulSet
	for _, o := range openkruise.Objects(t, apiserver.Scheme(t), "testdata/openkruise.yaml") {
		o.SetResourceVersion("")
		switch o := o.(type) {
		case *kruise.PersistentPodState:
			theirs = o
		case *kruise.StatefulSet:
			set = o
		}
	}
	w := newWorld(t, theirs, set)
	before := maps.Clone(theirs.Status.PodStates)
	after := w.round().Status.PodStates
	if len(before) < 4 || !maps.EqualFunc(before, after, func(a, b kruise.PodState) bool {
		return a.NodeName == b.NodeName && maps.Equal(a.NodeTopologyLabels, b.NodeTopologyLabels)
	}) {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestTheGenerator(t *testing.T) {
	set := native(1)
	set.Annotations = map[string]string{
		"kruise.io/auto-generate-persistent-pod-state": "true", "kruise.io/required-persistent-topology": "host",
		"kruise.io/preferred-persistent-topology": "zone, rack", "kruise.io/persistent-pod-annotations": "players",
	}
	w := newWorld(t, set)
	g := &Generator{Client: w.api, New: func() client.Object { return &appsv1.StatefulSet{} }, Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet")}
	key := client.ObjectKeyFromObject(set)
	round := func() *kruise.PersistentPodState {
		t.Helper()
		if _, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		s := &kruise.PersistentPodState{}
		if err := w.api.Get(t.Context(), key, s); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			t.Fatal(err)
		}
		return s
	}
	annotate := func(key, value string) {
		t.Helper()
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		set.Annotations[key] = value
		if err := w.api.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	s := round()
	if s == nil || s.Spec.TargetReference != (kruise.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}) || !metav1.IsControlledBy(s, set) ||
		!slices.Equal(s.Spec.RequiredPersistentTopology.Keys, []string{"host"}) || s.Spec.PreferredPersistentTopology[0].Weight != 100 ||
		!slices.Equal(s.Spec.PreferredPersistentTopology[0].Preference.Keys, []string{"zone", "rack"}) || s.Spec.PersistentPodAnnotations[0].Key != "players" {
		t.Fatalf("got %+v", s)
	}
	annotate("kruise.io/required-persistent-topology", "")
	if s = round(); s.Spec.RequiredPersistentTopology != nil {
		t.Errorf("got %+v", s.Spec)
	}
	annotate("kruise.io/preferred-persistent-topology", "")
	if s = round(); s == nil || len(s.Spec.PreferredPersistentTopology) != 1 {
		t.Errorf("without any topology: %+v", s)
	}
	annotate("kruise.io/auto-generate-persistent-pod-state", "false")
	if s = round(); s != nil {
		t.Errorf("it is still there: %+v", s)
	}
	mine := state("apps/v1", nil) // of a user
	if err := w.api.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if s = round(); s == nil {
		t.Error("that of a user is gone")
	}
}
