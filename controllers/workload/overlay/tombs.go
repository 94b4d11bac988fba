package overlay

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is for how long, at least, the end of a pod is known: longer than
// any answer of the API server takes.
const remembered = time.Minute

// tombs remember pods that have ended, for one to two times that long.
type tombs struct {
	young, old map[types.UID]bool
	turned     time.Time
}

func newTombs(now time.Time) tombs {
	return tombs{young: map[types.UID]bool{}, turned: now}
}

func (t *tombs) has(pod types.UID) bool { return t.young[pod] || t.old[pod] }

func (t *tombs) add(pod types.UID, now time.Time) {
	if now.Sub(t.turned) > remembered {
		t.young, t.old, t.turned = map[types.UID]bool{}, t.young, now
	}
	t.young[pod] = true
}
