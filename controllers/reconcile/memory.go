// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory keeps what a controller remembers of each object between its rounds. An object that was
// deleted and created again starts with a fresh memory. Several goroutines may use a Memory. The memory of
// one object needs no lock, as no two rounds of an object overlap.
type Memory[M any] struct {
	fresh   func() M
	dropped func(types.UID)

	mu sync.Mutex
	of map[types.NamespacedName]*memoryEntry[M]
}

type memoryEntry[M any] struct {
	uid   types.UID
	value M
}

// NewMemory returns a Memory that gives each new object the value that fresh returns. dropped is called with the UIDs of
// objects that are forgotten; it may be nil.
func NewMemory[M any](fresh func() M, dropped func(types.UID)) *Memory[M] {
	if dropped == nil {
		dropped = func(types.UID) {}
	}
	return &Memory[M]{fresh: fresh, dropped: dropped, of: map[types.NamespacedName]*memoryEntry[M]{}}
}

// GetOrCreate returns the memory of an object.
func (m *Memory[M]) GetOrCreate(o client.Object) *M {
	key := client.ObjectKeyFromObject(o)
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of[key]
	if r == nil || r.uid != o.GetUID() {
		if r != nil {
			m.dropped(r.uid)
		}
		r = &memoryEntry[M]{uid: o.GetUID(), value: m.fresh()}
		m.of[key] = r
	}
	return &r.value
}

// ForgetObject drops the memory of the object with a name.
func (m *Memory[M]) ForgetObject(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.of[key]; r != nil {
		m.dropped(r.uid)
		delete(m.of, key)
	}
}
