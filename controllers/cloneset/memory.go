// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what is kept of a CloneSet between rounds. It only saves work: losing it
// changes no decision.
type memory struct {
	// limited is the message of the last event ScaleUpLimited, "" while creation is not
	// limited.
	limited string
	// claims are those that pods may use, as Scale found them in this round.
	claims []*corev1.PersistentVolumeClaim
	// proven is the revision whose pods could all be made the last time.
	proven string
	mu     sync.Mutex // pods are created in parallel; it guards what follows
	// foreign are instance ids whose pod is there, but not ours.
	foreign map[string]bool
	// tried are instance ids that pods could not be made with. They are used again
	// before any other: their claims may be there, and so may the pod if only the answer
	// was lost, which is then known by its name.
	tried map[string]bool
	// deletedClaims are claims that we deleted, until the cache shows it.
	deletedClaims map[types.UID]bool
}

func newMemory() *memory {
	return &memory{foreign: map[string]bool{}, tried: map[string]bool{}, deletedClaims: map[types.UID]bool{}}
}

// markForeign notes that the pod of an id has another owner.
func (m *memory) markForeign(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.foreign[id] = true
}

func (m *memory) isForeign(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.foreign[id]
}

// recordAttempt notes that the pod of an id could not be made, or that it could.
func (m *memory) recordAttempt(id string, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if made {
		delete(m.tried, id)
	} else {
		m.tried[id] = true
	}
}

// toTry are the ids that are to be tried again, in order.
func (m *memory) toTry() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.tried))
}

func (m *memory) deletedClaim(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deletedClaims[uid] = true
}

// splitClaims says which of the claims that the cache shows pods may use, and forgets
// what the cache has caught up with.
func (m *memory) splitClaims(claims []corev1.PersistentVolumeClaim) (usable, going []*corev1.PersistentVolumeClaim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	late := map[types.UID]bool{}
	for i := range claims {
		switch c := &claims[i]; {
		case c.DeletionTimestamp != nil:
			going = append(going, c)
		case m.deletedClaims[c.UID]:
			late[c.UID] = true
			going = append(going, c)
		default:
			usable = append(usable, c)
		}
	}
	m.deletedClaims = late
	return usable, going
}
