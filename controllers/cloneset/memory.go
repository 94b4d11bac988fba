// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is the state that the controller keeps for a CloneSet between rounds. It only saves work: losing it
// changes no decision.
type memory struct {
	// limited is the message of the last event ScaleUpLimited, "" while creation is not
	// limited.
	limited string
	// claims are the claims that pods may use, as ScalePods found them in this round.
	claims []*corev1.PersistentVolumeClaim
	// proven is the revision whose pods could all be created the last time.
	proven string
	mu     sync.Mutex // pods are created in parallel; it guards what follows
	// foreign are instance ids whose pod has another owner.
	foreign map[string]bool
	// tried are instance ids with which creating a pod failed. They are used again
	// before any other: their claims may exist. If only the answer was lost, so may the
	// pod, which is then found by its name.
	tried map[string]bool
	// deletedClaims are claims that the controller deleted, until the cache shows the deletion.
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

// recordAttempt notes whether the pod of an id could be created.
func (m *memory) recordAttempt(id string, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if made {
		delete(m.tried, id)
	} else {
		m.tried[id] = true
	}
}

// toTry are the ids to try again, in order.
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

// splitClaims separates the claims in the cache into those that pods may use and those that terminate.
// It forgets the deletions that the cache shows by now.
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
