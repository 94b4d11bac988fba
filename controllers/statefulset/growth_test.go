// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
)

// storage binds claims and grows their volumes as their class says: fast ones at once, those of
// class late with the file system when their pod starts anew, those of class full to 5Gi at most.
type storage struct {
	*world
	sizes []string        // what claims were seen to ask for, in order
	seen  map[string]bool // the same
}

func classes() []client.Object {
	var out []client.Object
	for name, grows := range map[string]*bool{"fast": ptr.To(true), "late": ptr.To(true), "full": ptr.To(true), "fixed": ptr.To(false), "silent": nil} {
		out = append(out, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: grows})
	}
	return out
}

func newStorage(t *testing.T, e *engine.Engine, gates Gates, edit func(*kruise.StatefulSet), objects ...client.Object) *storage {
	t.Helper()
	s := &storage{seen: map[string]bool{}}
	s.world = newWorld(t, e, gates, append(append(classes(), objects...), testSet(3, edit))...)
	return s
}

// provide is what the storage does between two rounds.
func (s *storage) provide() {
	s.t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.c.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		asks, has := c.Spec.Resources.Requests.Storage(), c.Status.Capacity.Storage()
		if what := c.Name + "=" + asks.String(); !s.seen[what] {
			s.seen[what] = true
			s.sizes = append(s.sizes, what)
		}
		started := s.pods()[strings.TrimPrefix(c.Name, "data-")]
		switch class := ptr.Deref(c.Spec.StorageClassName, ""); {
		case c.Status.Phase == "":
			c.Status.Phase = corev1.ClaimBound
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *asks}
		case asks.Cmp(*has) <= 0:
			continue
		case class == "full" && asks.Cmp(resource.MustParse("5Gi")) > 0:
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "the pool is full"}}
		case class == "late" && (started == nil || started.Annotations["mounted"] == c.Name+has.String()):
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
		default:
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *asks}
			c.Status.Conditions = nil
		}
		if err := s.c.Status().Update(s.t.Context(), c); err != nil {
			s.t.Fatal(err)
		}
	}
	for name, p := range s.pods() { // each has mounted its volume as it was when it started
		if p.Annotations["mounted"] == "" {
			claim := s.claim("data-" + name)
			p.Annotations = map[string]string{"mounted": claim.Name + claim.Status.Capacity.Storage().String()}
			if err := s.c.Update(s.t.Context(), p); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func (s *storage) claim(name string) *corev1.PersistentVolumeClaim {
	s.t.Helper()
	c := &corev1.PersistentVolumeClaim{}
	if err := s.c.Get(context.Background(), client.ObjectKey{Namespace: "shop", Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// settle lets everything happen, and sees that no more pods are away or growing than may be.
func (s *storage) settle() {
	s.t.Helper()
	for range 30 {
		s.reconcile()
		s.provide()
		s.kubelet()
		s.now = s.now.Add(1e9)
		growing := 0
		for name := range s.pods() {
			if c := s.claim("data-" + name); c.Status.Capacity.Storage().Cmp(*c.Spec.Resources.Requests.Storage()) < 0 {
				growing++
			}
		}
		if growing > 1 {
			s.t.Errorf("%d claims grow at once", growing)
		}
	}
}

// asked is what claims have come to ask for since the last call.
func (s *storage) asked() string {
	out := strings.Join(s.sizes, " ")
	s.sizes = nil
	return out
}

func (s *storage) told() (reasons []string) {
	for {
		select {
		case e := <-s.events.Events:
			if words := strings.Fields(e); strings.Contains(words[1], "Resize") || words[1] == kruise.FailedUpdatePVCReason {
				reasons = append(reasons, words[1])
			}
		default:
			slices.Sort(reasons)
			return slices.Compact(reasons)
		}
	}
}

func claims1Gi(class string, when kruise.VolumeClaimUpdateStrategyType) func(*kruise.StatefulSet) {
	return func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimUpdateStrategy.Type = when
		t := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		t.Spec.StorageClassName = &class
		t.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{t}
	}
}

func size(s string) func(*kruise.StatefulSet) {
	return func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(s)
	}
}

func TestClaimsGrow(t *testing.T) {
	const onUpdate, onDelete = kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType, kruise.OnDeleteVolumeClaimUpdateStrategyType
	e := testEngine(t)
	both := func(set *kruise.StatefulSet) { size("2Gi")(set); image("2")(set) }
	inPlace := func(set *kruise.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.InPlaceIfPossiblePodUpdatePolicyType
	}
	recreated := "-db-2 +db-2=db:2 -db-1 +db-1=db:2 -db-0 +db-0=db:2"
	all := "data-db-2=2Gi data-db-1=2Gi data-db-0=2Gi"
	for name, tc := range map[string]struct {
		off     bool
		class   string
		when    kruise.VolumeClaimUpdateStrategyType
		edit    func(*kruise.StatefulSet)
		changes []func(*kruise.StatefulSet)
		asked   string // what claims ask for
		did     string // what became of pods
		events  []string
		held    string // the reason of UpdateHeld
		differ  string // the reason of VolumeClaimsDiffer
		ready   int32  // claims that have grown
	}{
		"one pod after the other, before it is recreated": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){both}, asked: all, did: recreated, events: []string{"SuccessfulResize"}, ready: 3,
		},
		"before it is updated in place": {
			class: "fast", when: onUpdate, edit: inPlace, changes: []func(*kruise.StatefulSet){both}, asked: all, events: []string{"SuccessfulResize"}, ready: 3,
		},
		"where only they change no pod does": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){size("2Gi")}, asked: all, events: []string{"SuccessfulResize"}, ready: 3,
		},
		"a pod is not kept from its update by a file system that grows when it starts": {
			class: "late", when: onUpdate, changes: []func(*kruise.StatefulSet){both}, asked: all, did: recreated, events: []string{"SuccessfulResize"}, ready: 3,
		},
		"the partition keeps claims as well": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				both(set)
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
			}},
			asked: "data-db-2=2Gi", did: "-db-2 +db-2=db:2", events: []string{"SuccessfulResize"}, ready: 1,
		},
		"a paused update grows none": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				both(set)
				set.Spec.UpdateStrategy.RollingUpdate.Paused = true
			}}, held: "RolloutPaused",
		},
		"growth that fails stops the update at the first pod": {
			class: "full", when: onUpdate, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) { size("10Gi")(set); image("2")(set) }},
			asked: "data-db-2=10Gi", events: []string{"FailedResize", "SuccessfulResize"},
		},
		"and goes on with a size that can be had": {
			class: "full", when: onUpdate, changes: []func(*kruise.StatefulSet){
				func(set *kruise.StatefulSet) { size("10Gi")(set); image("2")(set) }, size("2Gi"),
			},
			asked: "data-db-2=10Gi " + all, did: recreated, events: []string{"FailedResize", "SuccessfulResize"}, ready: 3,
		},
		"and is over when it is taken back": {
			class: "full", when: onUpdate, changes: []func(*kruise.StatefulSet){
				func(set *kruise.StatefulSet) { size("10Gi")(set); image("2")(set) }, size("1Gi"),
			},
			asked: "data-db-2=10Gi", did: recreated, events: []string{"FailedResize", "SuccessfulResize"}, differ: "Larger", ready: 2,
		},
		"not in a class that forbids it, and the pods are not updated": {
			class: "fixed", when: onUpdate, changes: []func(*kruise.StatefulSet){both},
			events: []string{"FailedUpdatePVC"}, held: "VolumeClaimsDiffer", differ: "CannotGrow",
		},
		"nor in one that does not say": {
			class: "silent", when: onUpdate, changes: []func(*kruise.StatefulSet){both},
			events: []string{"FailedUpdatePVC"}, held: "VolumeClaimsDiffer", differ: "CannotGrow",
		},
		"nor in one that is gone": {
			class: "gone", when: onUpdate, changes: []func(*kruise.StatefulSet){size("2Gi")},
			events: []string{"FailedUpdatePVC"}, held: "VolumeClaimsDiffer", differ: "CannotGrow",
		},
		"a class is not changed by growing": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("late")
				image("2")(set)
			}},
			events: []string{"FailedUpdatePVC"}, held: "VolumeClaimsDiffer", differ: "CannotGrow",
		},
		"nor are access modes": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				set.Spec.VolumeClaimTemplates[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			}},
			events: []string{"FailedUpdatePVC"}, held: "VolumeClaimsDiffer", differ: "CannotGrow",
		},
		"a smaller template changes nothing but the condition": {
			class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) { size("512Mi")(set); image("2")(set) }},
			did: recreated, differ: "Larger", ready: 3,
		},
		"OnDelete leaves claims as they are": {
			class: "fast", when: onDelete, changes: []func(*kruise.StatefulSet){both}, did: recreated, differ: "OnDelete",
		},
		"and so does a set without the gate": {
			off: true, class: "fast", when: onUpdate, changes: []func(*kruise.StatefulSet){both}, did: recreated, differ: "OnDelete",
		},
		"another class with OnDelete": {
			class: "fast", when: onDelete, changes: []func(*kruise.StatefulSet){func(set *kruise.StatefulSet) {
				set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("late")
			}}, differ: "OnDelete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStorage(t, e, Gates{AutoResizePVC: !tc.off}, func(set *kruise.StatefulSet) {
				claims1Gi(tc.class, tc.when)(set)
				if tc.edit != nil {
					tc.edit(set)
				}
			})
			s.settle()
			s.asked()
			s.did()
			for _, change := range tc.changes {
				s.change(change)
				s.settle()
			}
			if got := s.asked(); got != tc.asked {
				t.Errorf("claims ask for %q, want %q", got, tc.asked)
			}
			if got := s.did(); got != tc.did {
				t.Errorf("it did %q, want %q", got, tc.did)
			}
			if got := s.told(); !slices.Equal(got, tc.events) {
				t.Errorf("events %v, want %v", got, tc.events)
			}
			status := s.set().Status
			got := map[string]string{}
			for _, c := range status.Conditions {
				if c.Status == corev1.ConditionTrue {
					got[string(c.Type)] = c.Reason
				}
			}
			if got[kruise.UpdateHeld] != tc.held || got[string(kruise.StatefulSetVolumeClaimsDiffer)] != tc.differ {
				t.Errorf("conditions %v, want held %q, differ %q: %v", got, tc.held, tc.differ, status.Conditions)
			}
			if v := status.VolumeClaims[0]; v.CompatibleReadyReplicas != tc.ready {
				t.Errorf("volumeClaims %+v, want %d ready", v, tc.ready)
			}
		})
	}
}

// Each claim is compared with the template by itself.
func TestClaimsOfDifferentSizes(t *testing.T) {
	s := newStorage(t, testEngine(t), Gates{AutoResizePVC: true}, claims1Gi("fast", kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType))
	s.settle()
	large := s.claim("data-db-1")
	large.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
	if err := s.c.Update(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.asked()
	s.change(size("2Gi"))
	s.settle()
	if got, want := s.asked(), "data-db-2=2Gi data-db-0=2Gi"; got != want {
		t.Errorf("claims ask for %q, want %q", got, want)
	}
	owned := map[string]string{}
	for _, name := range []string{"data-db-0", "data-db-1", "data-db-2"} {
		owned[name] = s.claim(name).Annotations[kruise.OwnedByAdvancedStatefulSetKey]
	}
	if want := map[string]string{"data-db-0": "db", "data-db-1": "", "data-db-2": "db"}; !maps.Equal(owned, want) {
		t.Errorf("annotations %v, want %v", owned, want)
	}
	for name, want := range map[string]string{"data-db-0": "[shop/db]", "data-db-1": "[]"} {
		if got, err := setsResizingClaim(t.Context(), s.claim(name)); fmt.Sprint(got) != want || err != nil {
			t.Errorf("a change of claim %s concerns %v, want %s: %v", name, got, want, err)
		}
	}
}

// One claim that cannot grow does not keep the others from it, nor does it hide that it differs.
func TestAClaimThatCannotGrowKeepsNoOther(t *testing.T) {
	odd := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-2", Namespace: "shop"}}
	odd.Spec.StorageClassName = ptr.To("fixed")
	odd.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	odd.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	s := newStorage(t, testEngine(t), Gates{AutoResizePVC: true}, func(set *kruise.StatefulSet) {
		claims1Gi("fast", kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType)(set)
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = nil
	}, odd)
	for _, name := range []string{"data-db-0", "data-db-1"} { // as the default class makes them
		c := odd.DeepCopy()
		c.ResourceVersion, c.Name, c.Spec.StorageClassName = "", name, ptr.To("fast")
		if err := s.c.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	s.settle()
	s.asked()
	s.change(size("2Gi"))
	s.settle()
	if got, want := s.asked(), "data-db-1=2Gi data-db-0=2Gi"; got != want {
		t.Errorf("claims ask for %q, want %q", got, want)
	}
	c := rollout.FindCondition(s.set().Status.Conditions, string(kruise.StatefulSetVolumeClaimsDiffer))
	if c == nil || c.Message != "Claim data-db-2: size 1Gi, not 2Gi, and storage class fixed does not allow volumes to grow." {
		t.Errorf("told is %v", c)
	}
}

// With pods that are updated when they are deleted, claims grow when their pods are made.
func TestClaimsGrowWithPodsThatADeleteUpdates(t *testing.T) {
	s := newStorage(t, testEngine(t), Gates{AutoResizePVC: true}, func(set *kruise.StatefulSet) {
		claims1Gi("fast", kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType)(set)
		set.Spec.UpdateStrategy = kruise.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	})
	s.settle()
	s.asked()
	s.change(size("2Gi"))
	s.settle()
	if got := s.asked(); got != "" {
		t.Errorf("before a pod is deleted claims ask for %q", got)
	}
	if err := s.c.Delete(t.Context(), s.pods()["db-1"]); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if got, want := s.asked(), "data-db-1=2Gi"; got != want {
		t.Errorf("claims ask for %q, want %q", got, want)
	}
}

// What the cache shows later than it was written does not count as undone.
func TestClaimsAreSeenAsTheyWereWritten(t *testing.T) {
	m := &memory{}
	old := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", UID: "1", ResourceVersion: "7"}}
	written := old.DeepCopy()
	written.ResourceVersion = "9"
	m.rememberClaim(written)
	if got := m.newestClaim(old); got != written {
		t.Errorf("an older one is taken for newer: %s", got.ResourceVersion)
	}
	later := old.DeepCopy()
	later.ResourceVersion = "12"
	if got := m.newestClaim(later); got != later {
		t.Errorf("a newer one is taken for older: %s", got.ResourceVersion)
	}
	m.rememberClaim(written)
	another := old.DeepCopy()
	another.UID = "2"
	if got := m.newestClaim(another); got != another {
		t.Error("another claim of the name is taken for the same")
	}
}

// A claim that grows uses up maxUnavailable for a restart in place, as it does for an update.
func TestARestartWaitsForAClaimThatGrows(t *testing.T) {
	e := testEngine(t)
	s := newStorage(t, e, Gates{AutoResizePVC: true}, func(set *kruise.StatefulSet) {
		claims1Gi("full", kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType)(set)
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
	})
	s.r = rollout.New(New(Gates{AutoResizePVC: true}), reconcile.Deps{Client: s.c, Live: s.c, Events: s.events, Engine: e, Now: func() time.Time { return s.now }},
		rollout.WithWindow(inflight.NewFixed(1)), rollout.WithAgents(func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil }))
	run := func() {
		for range 6 {
			s.reconcile()
			s.provide()
			s.kubelet()
			s.now = s.now.Add(time.Second)
		}
	}
	run()
	s.change(size("10Gi"))
	run() // the claim of db-2 grows, and does not end
	s.change(func(set *kruise.StatefulSet) {
		set.Annotations = map[string]string{kruise.RestartInPlaceKey: s.now.UTC().Format(time.RFC3339)}
	})
	var restarted []string
	for range 4 {
		run()
		list := &kruise.ContainerRecreateRequestList{}
		if err := s.c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.Status.CompletionTime == nil {
				restarted = append(restarted, o.Spec.PodName)
				o.Status.Phase, o.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, ptr.To(metav1.NewTime(s.now))
				if err := s.c.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if !slices.Equal(restarted, []string{"db-2"}) {
		t.Errorf("restarted are %v, want db-2 alone: %+v", restarted, s.set().Status.Conditions)
	}
}
