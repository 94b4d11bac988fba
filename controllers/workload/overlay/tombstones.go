// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is the minimum time for which the end of a pod is remembered: longer than
// any answer of the API server takes.
const remembered = time.Minute

// tombstones remember pods that have ended, for between once and twice that time.
type tombstones struct {
	young, old map[types.UID]bool
	turned     time.Time
}

func newTombstones(now time.Time) tombstones {
	return tombstones{young: map[types.UID]bool{}, turned: now}
}

func (t *tombstones) hasPod(pod types.UID) bool { return t.young[pod] || t.old[pod] }

func (t *tombstones) addPod(pod types.UID, now time.Time) {
	if now.Sub(t.turned) > remembered {
		t.young, t.old, t.turned = map[types.UID]bool{}, t.young, now
	}
	t.young[pod] = true
}
