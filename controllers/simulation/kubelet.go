// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
)

// fakeNodes does the work of the scheduler, of the kubelets and of the owners of hooks.
type fakeNodes struct {
	c          *cluster
	readyAfter time.Duration
	room       map[string]int // pods each node is to have
	runs       map[types.UID]*runningPod

	// broken are the names of pods that never become ready. fails is how many more pods that start never become ready, and
	// heirs is how many replacements of broken pods are still to start.
	broken map[string]bool
	fails  int
	heirs  int
	// gradual lets a started pod become ready only at the next step, and not at once.
	gradual bool
}

// runningPod is the state of a pod in its kubelet.
type runningPod struct {
	images map[string]string // by container
	starts int
	ready  time.Time // when the pod becomes ready; zero for never

	// idle is the pod when nothing was to be done, and until is when
	// something will be; zero for never.
	idle  *corev1.Pod
	until time.Time
}

func newFakeNodes(c *cluster, f ClusterState, o options) *fakeNodes {
	m := &fakeNodes{c: c, readyAfter: o.readyAfter, room: maps.Clone(f.Room), runs: map[types.UID]*runningPod{}, broken: map[string]bool{}, fails: o.fails}
	for _, name := range o.broken {
		m.broken[name] = true
	}
	if m.room == nil {
		m.room = map[string]int{}
		for _, p := range c.sortedPods() {
			m.room[p.Spec.NodeName]++
		}
	}
	for _, p := range c.sortedPods() { // running pods continue; pods that are not ready become ready later
		if len(p.Status.ContainerStatuses) == 0 || inplace.IncompleteReason(p) != "" {
			continue
		}
		r := &runningPod{images: map[string]string{}, ready: c.now().Add(o.readyAfter)}
		for i := range p.Spec.Containers {
			r.images[p.Spec.Containers[i].Name] = p.Spec.Containers[i].Image
		}
		if m.broken[p.Name] { // the pod keeps its readiness as it is
			r.ready = time.Time{}
		}
		m.runs[p.UID] = r
	}
	return m
}

// forgetPod makes sure that the replacement of a broken pod never becomes ready either.
func (m *fakeNodes) forgetPod(p *corev1.Pod) {
	if m.broken[p.Name] {
		m.heirs++
	}
	delete(m.runs, p.UID)
}

// syncPods does everything that is due. It reports whether it did anything, and when the
// next change is due; zero for never.
func (m *fakeNodes) syncPods(ctx context.Context) (did bool, next time.Time, err error) {
	soonest := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, was := range m.c.sortedPods() {
		if r := m.runs[was.UID]; r != nil && r.idle == was && (r.until.IsZero() || m.c.now().Before(r.until)) {
			soonest(r.until)
			continue
		}
		p := was.DeepCopy()
		m.schedulePod(p)
		m.completeHooks(p)
		m.runPod(p)
		at := m.nextChangeTime(p)
		soonest(at)
		if equality.Semantic.DeepEqual(was, p) {
			r := m.runs[was.UID]
			r.idle, r.until = was, at
			continue
		}
		if err := m.c.updatePod(ctx, was, p); err != nil {
			return did, next, err
		}
		did = true
	}
	return did, next, nil
}

// unnamedNode is the node of pods for which the simulation has no other.
const unnamedNode = "node"

// schedulePod binds a pod to the node that it requires, or else to the node with the most room
// left.
func (m *fakeNodes) schedulePod(p *corev1.Pod) {
	if p.Spec.NodeName != "" {
		return
	}
	if name := nodefit.NodeOf(p); name != "" {
		if slices.ContainsFunc(m.c.nodes, func(n *corev1.Node) bool { return n.Name == name }) {
			p.Spec.NodeName = name
		}
		return
	}
	have := map[string]int{}
	for _, o := range m.c.podsByName() {
		have[o.(*corev1.Pod).Spec.NodeName]++
	}
	best, most := unnamedNode, 0
	for i, n := range m.c.nodes {
		if left := m.room[n.Name] - have[n.Name]; !n.Spec.Unschedulable && (i == 0 || best == unnamedNode || left > most) {
			best, most = n.Name, left
		}
	}
	p.Spec.NodeName = best
}

// runPod starts the containers of a pod, and makes containers ready that have run for long enough.
func (m *fakeNodes) runPod(p *corev1.Pod) {
	r := m.runs[p.UID]
	if r == nil {
		r = &runningPod{images: map[string]string{}}
		m.runs[p.UID] = r
	}
	started := false
	for i := range p.Spec.Containers {
		spec := &p.Spec.Containers[i]
		if r.images[spec.Name] != spec.Image {
			m.startContainer(p, r, spec)
			started = true
		}
		st := statusOf(p, spec.Name)
		if st == nil { // the container runs, but has no status yet
			st = newStatus(p, r, spec)
		}
		if started && m.gradual {
			continue
		}
		if p.Status.Phase == corev1.PodRunning && !r.ready.IsZero() && !m.c.now().Before(r.ready) {
			st.Ready = true
		}
		if st.Resources != nil || len(spec.Resources.Limits)+len(spec.Resources.Requests) > 0 {
			st.Resources = spec.Resources.DeepCopy()
		}
	}
	m.setReadyCondition(p)
}

// startContainer starts a container with the image in its pod's spec.
func (m *fakeNodes) startContainer(p *corev1.Pod, r *runningPod, spec *corev1.Container) {
	again := r.starts > 0 && r.images[spec.Name] != ""
	r.images[spec.Name] = spec.Image
	st := newStatus(p, r, spec)
	if again {
		st.RestartCount++
	}
	p.Status.Phase = corev1.PodRunning
	if p.Status.StartTime == nil {
		p.Status.StartTime = &metav1.Time{Time: m.c.now()}
	}
	if r.ready = m.c.now().Add(m.readyAfter); m.isNeverReady(p) {
		r.ready = time.Time{}
	}
}

// newStatus returns the status of a container that has just started.
func newStatus(p *corev1.Pod, r *runningPod, spec *corev1.Container) *corev1.ContainerStatus {
	r.starts++
	st := statusOf(p, spec.Name)
	if st == nil {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: spec.Name})
		st = &p.Status.ContainerStatuses[len(p.Status.ContainerStatuses)-1]
	}
	st.Image, st.ImageID, st.Ready = spec.Image, "simulated:"+spec.Image, false
	st.ContainerID = fmt.Sprintf("simulated://%s/%s/%d", p.UID, spec.Name, r.starts)
	st.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return st
}

// isNeverReady reports whether a pod that starts is one of those that never become ready.
func (m *fakeNodes) isNeverReady(p *corev1.Pod) bool {
	switch {
	case m.broken[p.Name]:
	case m.heirs > 0:
		m.heirs--
		m.broken[p.Name] = true
	case m.fails > 0:
		m.fails--
		m.broken[p.Name] = true
	}
	return m.broken[p.Name]
}

// nextChangeTime is when a pod changes next by itself, zero for never.
func (m *fakeNodes) nextChangeTime(p *corev1.Pod) time.Time {
	if r := m.runs[p.UID]; r.ready.After(m.c.now()) && p.Status.Phase == corev1.PodRunning &&
		slices.ContainsFunc(p.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return !st.Ready }) {
		return r.ready
	}
	return time.Time{}
}

// setReadyCondition computes the condition Ready as a kubelet does.
func (m *fakeNodes) setReadyCondition(p *corev1.Pod) {
	status := corev1.ConditionTrue
	if slices.ContainsFunc(p.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return !st.Ready }) {
		status = corev1.ConditionFalse
	}
	for _, g := range p.Spec.ReadinessGates {
		if c := inplace.FindCondition(p, g.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			status = corev1.ConditionFalse
		}
	}
	c := inplace.FindCondition(p, corev1.PodReady)
	if c == nil {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady})
		c = &p.Status.Conditions[len(p.Status.Conditions)-1]
	}
	if c.Status != status {
		*c = corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(m.c.now())}
	}
}

// completeHooks completes at once the lifecycle hook that holds a pod.
func (m *fakeNodes) completeHooks(p *corev1.Pod) {
	l := m.c.workloadSpec().Lifecycle
	if l == nil {
		return
	}
	switch lifecycle.PodState(p) {
	case kruise.LifecycleStatePreparingUpdate:
		removeHook(l.InPlaceUpdate, p)
	case kruise.LifecycleStatePreparingDelete:
		removeHook(l.PreDelete, p)
	case kruise.LifecycleStateUpdated:
		addHook(l.InPlaceUpdate, p)
	case kruise.LifecycleStatePreparingNormal:
		addHook(l.PreNormal, p)
	case kruise.LifecycleStateNormal:
		if m.gradual { // an update or a deletion was cancelled
			addHook(l.InPlaceUpdate, p)
			addHook(l.PreDelete, p)
		}
	}
}

func removeHook(h *kruise.LifecycleHook, p *corev1.Pod) {
	if h == nil {
		return
	}
	for k, v := range h.LabelsHandler {
		if p.Labels[k] == v {
			delete(p.Labels, k)
		}
	}
	p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return slices.Contains(h.FinalizersHandler, f) })
}

func addHook(h *kruise.LifecycleHook, p *corev1.Pod) {
	if h == nil {
		return
	}
	maps.Copy(p.Labels, h.LabelsHandler)
	for _, f := range h.FinalizersHandler {
		if !slices.Contains(p.Finalizers, f) {
			p.Finalizers = append(p.Finalizers, f)
		}
	}
}

func statusOf(p *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == name {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}
