// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// replacedPods has the names of pods that an update took to be recreated and whose next pods are
// not created yet; of kinds with a pod on each node, the names of the nodes. These updates were begun before a hold, such as one that counts the pods
// which are available, so a hold lets them end. Losing the names, as with a restart, has the
// next pods made of the current revision: that is the stricter way.
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

// replacedName is what is the same of a pod and of the one that replaces it, where anything is.
func (c *Controller) replacedName(pod *corev1.Pod) string {
	if c.typ.NodeOf != nil {
		return c.typ.NodeOf(pod)
	}
	return pod.Name
}

// ReplacedNames are the names of the pods, or of their nodes, that the update took, and whose next pods may be of its
// revision whatever holds it since. Those that are there and stay are none of them.
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

// ForgetReplaced forgets a pod that the next one has been created for: that of a name, or any
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

// ForgetAllReplaced forgets the pods that are gone, because none is missing: what replaced them is there, as with surge it was before.
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
