// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
)

const (
	simKubelet    = "sim/kubelet"    // a pod stays while it terminates
	simProtection = "sim/protection" // a claim stays while a pod uses it
	simHook       = "sim-hook"       // the label of lifecycle hooks
)

// gates are those of CloneSets and those of all workloads.
type gates struct {
	Gates
	common rollout.Gates
}

// sim is a cluster with one CloneSet, whose time and events a test turns by hand.
type sim struct {
	t interface {
		Helper()
		Fatal(...any)
		Fatalf(string, ...any)
	}
	truth  client.Client
	engine *engine.Engine
	gates  gates
	r      *rollout.Controller
	events *record.FakeRecorder
	uid    types.UID
	ns     string
	now    time.Time
	uids   int

	last, cache, pristine map[string]client.Object
	pending               []change
	queue                 *simQueue
	timer                 time.Time // zero: none
	failures              int       // in a row

	turn    time.Duration // zero: a round does as little as it can; time passes between rounds only
	fault   func() fault
	deny    func(o client.Object, what string) error // what the API server refuses
	ended   bool
	history []string
	broken  string // the first promise that was broken
	// released has the instance ids of pods that were.
	released map[string]bool
	witness  *Witness
	pods     map[types.UID]*container
}

// container is what the kubelet knows of a pod's container.
type container struct {
	image   string
	started int
	wait    int // steps until it is ready
}

func (s *sim) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("%06d", s.uids)) // the same in each life: what sorts by it is drawn again as it was
}

// newSim puts a CloneSet into a namespace of its own.
func newSim(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, truth client.Client, e *engine.Engine, ns string, gates gates, set *kruise.CloneSet) *sim {
	s := &sim{
		t: t, truth: truth, engine: e, ns: ns, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), gates: gates,
		last: map[string]client.Object{}, cache: map[string]client.Object{}, pristine: map[string]client.Object{},
		queue: &simQueue{}, turn: 500 * time.Millisecond, fault: func() fault { return none }, pods: map[types.UID]*container{}, released: map[string]bool{}, witness: NewWitness(),
	}
	rand.Seed(1) // the names of pods
	set = set.DeepCopy()
	set.Namespace, set.Name, set.UID = ns, "web", s.newUID()
	s.uid = set.UID
	s.start()
	if err := truth.Create(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	s.commit(set)
	s.showAll("")
	return s
}

func (q *simQueue) Add(reconcile.Request) { q.dirty = true }

// start starts a controller: its cache has all there is, and nothing is remembered.
func (s *sim) start() {
	s.ended, s.timer, s.failures = false, time.Time{}, 0
	s.pending = nil
	s.cache, s.pristine = map[string]client.Object{}, map[string]client.Object{}
	for k, o := range s.last {
		s.cache[k], s.pristine[k] = o.DeepCopyObject().(client.Object), o
	}
	s.events = record.NewFakeRecorder(100_000)
	a := api{s.truth, s}
	s.r = New(Kind{Gates: s.gates.Gates}, rollout.Clients{Client: a, Live: live{a}, Events: s.events}, s.engine,
		rollout.WithGates(s.gates.common), rollout.WithClock(func() time.Time { return s.now }), rollout.WithParallelWrites(1), rollout.WithTurn(s.turn))
	s.queue.dirty = true
}

// reconcile does what the work queue does with one item.
func (s *sim) reconcile() {
	s.queue.dirty, s.timer = false, time.Time{}
	s.history = append(s.history, "reconcile")
	result, err := s.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.ns, Name: "web"}})
	s.unchanged()
	if s.broken != "" {
		s.t.Fatalf("%s%s", s.broken, s.dump())
	}
	switch {
	case s.ended:
		s.history = append(s.history, "the controller starts again")
		s.start()
	case err != nil:
		s.failures++
		s.history = append(s.history, "error: "+err.Error())
		s.timer = s.now.Add(time.Duration(s.failures) * time.Second)
	case result.RequeueAfter > 0:
		s.failures = 0
		s.timer = s.now.Add(result.RequeueAfter)
	default:
		s.failures = 0
	}
}

// work reconciles if there is anything to do, and says so.
func (s *sim) work() bool {
	if !s.queue.dirty && (s.timer.IsZero() || s.timer.After(s.now)) {
		return false
	}
	s.reconcile()
	return true
}

// told says whether an event begins with a text.
func (s *sim) told(text string) bool {
	for {
		select {
		case e := <-s.events.Events:
			if strings.HasPrefix(e, text) {
				return true
			}
		default:
			return false
		}
	}
}

func (s *sim) set() *kruise.CloneSet { return s.last["CloneSet/web"].(*kruise.CloneSet) }

// change changes the CloneSet as a user does, and the cache shows it at once.
func (s *sim) change(edit func(*kruise.CloneSet)) {
	set := s.set().DeepCopy()
	edit(set)
	set.Generation++
	if err := s.truth.Update(context.Background(), set); err != nil {
		s.t.Fatal(err)
	}
	s.commit(set)
	s.showAll("CloneSet")
}

// all are the pods of the CloneSet as they are, by name.
func (s *sim) all() []*corev1.Pod {
	var out []*corev1.Pod
	for _, k := range slices.Sorted(maps.Keys(s.last)) {
		if p, ok := s.last[k].(*corev1.Pod); ok {
			out = append(out, p)
		}
	}
	return out
}

func (s *sim) update(p *corev1.Pod) {
	err := s.truth.Update(context.Background(), p)
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	s.commit(p)
}

// kubelet does the next thing for a pod, for its node and the scheduler, and says
// whether there was any.
func (s *sim) kubelet(name string) bool {
	p, ok := s.last["Pod/"+name].(*corev1.Pod)
	if !ok {
		return false
	}
	p = p.DeepCopy()
	switch {
	case p.DeletionTimestamp != nil:
		if !slices.Contains(p.Finalizers, simKubelet) {
			return false
		}
		s.letGo(p, simKubelet)
		s.commit(p)
		return true
	case p.Spec.NodeName == "":
		p.Spec.NodeName = "n1"
		s.update(p)
		return true
	}
	c := s.pods[p.UID]
	if c == nil {
		c = &container{}
		s.pods[p.UID] = c
	}
	before := p.DeepCopy()
	switch spec := p.Spec.Containers[0].Image; {
	case c.image != spec:
		c.image, c.wait = spec, 1
		c.started++
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: spec, ImageID: "sha256:" + spec, ContainerID: fmt.Sprint("c", c.started),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	case c.wait > 0:
		c.wait--
		p.Status.ContainerStatuses[0].Ready = true
	}
	s.ready(p)
	if equalStatus(before, p) {
		return false
	}
	if err := s.truth.Status().Update(context.Background(), p); err != nil {
		s.t.Fatal(err)
	}
	s.commit(p)
	return true
}

// ready works out Ready as the kubelet does.
func (s *sim) ready(p *corev1.Pod) {
	status := corev1.ConditionTrue
	if len(p.Status.ContainerStatuses) == 0 || !p.Status.ContainerStatuses[0].Ready {
		status = corev1.ConditionFalse
	}
	for _, g := range p.Spec.ReadinessGates {
		open := false
		for _, c := range p.Status.Conditions {
			open = open || (c.Type == g.ConditionType && c.Status == corev1.ConditionTrue)
		}
		if !open {
			status = corev1.ConditionFalse
		}
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			if c.Status != status {
				c.Status, c.LastTransitionTime, c.Reason, c.Message = status, metav1.NewTime(s.now), "", ""
			}
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(s.now)})
}

func equalStatus(a, b *corev1.Pod) bool {
	text := func(p *corev1.Pod) string {
		raw, err := p.Status.Marshal()
		if err != nil {
			panic(err)
		}
		return string(raw)
	}
	return text(a) == text(b)
}

// hooks lets a pod go on where a lifecycle hook holds it, as the operator does
// whose hook it is, and says whether it did.
func (s *sim) hooks(name string) bool {
	p, ok := s.last["Pod/"+name].(*corev1.Pod)
	if !ok || p.DeletionTimestamp != nil {
		return false
	}
	want := ""
	switch kruise.LifecycleStateType(p.Labels[kruise.LifecycleStateKey]) {
	case kruise.LifecycleStatePreparingNormal, kruise.LifecycleStateUpdated, kruise.LifecycleStateNormal:
		want = "on"
	case kruise.LifecycleStatePreparingUpdate, kruise.LifecycleStatePreparingDelete:
	default:
		return false
	}
	if p.Labels[simHook] == want || s.set().Spec.Lifecycle == nil {
		return false
	}
	p = p.DeepCopy()
	if p.Labels[simHook] = want; want == "" {
		delete(p.Labels, simHook)
	}
	s.update(p)
	return true
}

// claims lets claims go that no pod uses, and collects those of pods that are gone.
func (s *sim) claims() bool {
	used, pods := map[string]bool{}, map[types.UID]bool{}
	for _, p := range s.all() {
		pods[p.UID] = true
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				used[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	did := false
	for _, k := range slices.Sorted(maps.Keys(s.last)) {
		c, ok := s.last[k].(*corev1.PersistentVolumeClaim)
		if !ok || used[c.Name] {
			continue
		}
		if c.DeletionTimestamp != nil {
			s.letGo(c, simProtection)
			s.commit(c)
			did = true
			continue
		}
		if ref := metav1.GetControllerOf(c); ref != nil && ref.Kind == "Pod" && !pods[ref.UID] {
			if err := s.truth.Delete(context.Background(), c); err != nil {
				s.t.Fatal(err)
			}
			s.commit(c)
			did = true
		}
	}
	return did
}

// settle lets everything happen until nothing does, for as long as an hour.
func (s *sim) settle() {
	s.t.Helper()
	end := s.now.Add(time.Hour)
	for steps := 0; ; steps++ {
		did := false
		for _, p := range s.all() {
			did = s.kubelet(p.Name) || did
			did = s.hooks(p.Name) || did
		}
		did = s.claims() || did
		s.showAll("")
		did = s.work() || did
		if did && steps < 2000 {
			continue
		}
		if s.timer.IsZero() || s.timer.After(end) || steps >= 2000 {
			if steps >= 2000 {
				s.t.Fatalf("it never comes to rest: %s", s.tail())
			}
			return
		}
		s.now = s.timer
	}
}

// dump tells all there is to know.
func (s *sim) dump() string {
	out := []string{""}
	for _, k := range slices.Sorted(maps.Keys(s.last)) {
		switch o := s.last[k].(type) {
		case *kruise.CloneSet:
			ru := o.Spec.UpdateStrategy.RollingUpdate
			out = append(out, fmt.Sprintf("replicas %d, partition %s, maxUnavailable %s, maxSurge %s, paused %v, minReadySeconds %d, lifecycle %v, %+v", replicas(o), ru.Partition, ru.MaxUnavailable, ru.MaxSurge, ru.Paused, o.Spec.MinReadySeconds, o.Spec.Lifecycle, o.Spec.ScaleStrategy), fmt.Sprintf("%+v", o.Status))
		case *corev1.Pod:
			out = append(out, fmt.Sprintf("%s %v deleted %v, annotations %v, image %s, node %q, conditions %v", o.Name, o.Labels, o.DeletionTimestamp != nil, o.Annotations, o.Spec.Containers[0].Image, o.Spec.NodeName, o.Status.Conditions))
		default:
			out = append(out, fmt.Sprintf("%s deleted %v", k, o.GetDeletionTimestamp() != nil))
		}
	}
	return strings.Join(append(out, s.tail()), "\n")
}

func (s *sim) tail() string {
	h := s.history
	if len(h) > 200 {
		h = h[len(h)-200:]
	}
	return "  " + strings.Join(h, "\n  ")
}
