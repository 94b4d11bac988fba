// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// replacedPods has the names of pods that an update took to recreate them and whose replacements are
// not created yet; for kinds with a pod on each node, the names of the nodes. These updates began before a hold, such as a hold that depends on
// the number of available pods, so they may complete in spite of it. If the names are lost, for example by a restart, the
// replacements have the current revision, which is the stricter behaviour.
type replacedPods struct {
	mu       sync.Mutex
	revision string
	names    map[string]bool
}

func (m *replacedPods) addName(revision, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil || m.revision != revision {
		m.revision, m.names = revision, map[string]bool{}
	}
	m.names[name] = true
}

// replacedName returns the name that a pod and its replacement have in common, if they have one.
func (c *Controller) replacedName(pod *corev1.Pod) string {
	if c.typ.NodeOf != nil {
		return c.typ.NodeOf(pod)
	}
	return pod.Name
}

// ReplacedNames returns the names of the pods, or of their nodes, that the update took and whose replacements may have its
// revision in spite of later holds. It does not contain pods that exist and stay.
func (r *Round) ReplacedNames(f *Facts) map[string]bool {
	m := &r.memory.replaced
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision != f.Templates.UpdateRevision() {
		m.names = nil
	}
	for _, p := range f.Pods {
		if !f.IsLeaving(p) {
			delete(m.names, r.c.replacedName(p.Pod))
		}
	}
	out := make(map[string]bool, len(m.names))
	for name := range m.names {
		out[name] = true
	}
	return out
}

// ForgetReplaced forgets a pod whose replacement was created: the one with a name, or any
// if the name is empty.
func (r *Round) ForgetReplaced(name string) {
	m := &r.memory.replaced
	m.mu.Lock()
	defer m.mu.Unlock()
	if name != "" {
		delete(m.names, name)
		return
	}
	for first := range m.names {
		delete(m.names, first)
		return
	}
}

// ForgetAllReplaced forgets the pods that are gone, because no pod is missing. With surge the replacements exist even before
// the pods are gone.
func (r *Round) ForgetAllReplaced(f *Facts) {
	there := make(map[string]bool, len(f.Pods))
	for _, p := range f.Pods {
		there[r.c.replacedName(p.Pod)] = true
	}
	m := &r.memory.replaced
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.names, func(name string, _ bool) bool { return !there[name] })
}
