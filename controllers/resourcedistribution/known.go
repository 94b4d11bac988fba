// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/versions"
)

// known is what the manager remembers of copies from its own requests. It only saves requests: its
// loss changes no decision.
type known struct {
	mu sync.Mutex
	of map[types.UID]map[types.UID]sight // by distribution and namespace
}

// sight is the copy in a namespace when it was last read.
type sight struct {
	hash string // of the copy; "" if there is none of the distribution
	at   time.Time
	// copied has the version of the copy, nil if there is none.
	copied metav1.Object
}

// matchesCopy reports whether a copy has the remembered version, or an older one.
func (s sight) matchesCopy(o metav1.Object) bool {
	return s.copied != nil && s.copied.GetUID() == o.GetUID() && !versions.IsNewer(o, s.copied)
}

// recheckAfter is how long the manager relies on what it remembers of a copy.
func (t template) recheckAfter() time.Duration {
	if t.kind == "Secret" {
		return recheckSecrets
	}
	return recheckConfigMaps
}

func (k *known) getCopy(distribution, namespace types.UID) (sight, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.of[distribution][namespace]
	return s, ok
}

func (k *known) setCopy(distribution, namespace types.UID, s sight) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[types.UID]map[types.UID]sight{}
	}
	if k.of[distribution] == nil {
		k.of[distribution] = map[types.UID]sight{}
	}
	k.of[distribution][namespace] = s
}

// forgetCopy makes the next reconcile read the copy in a namespace again.
func (k *known) forgetCopy(distribution, namespace types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of[distribution], namespace)
}

// forgetDistribution forgets the copies of a distribution that is gone.
func (k *known) forgetDistribution(distribution types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, distribution)
}

// forgetNamespace forgets the copies in a namespace that is gone.
func (k *known) forgetNamespace(namespace types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, namespaces := range k.of {
		delete(namespaces, namespace)
	}
}
