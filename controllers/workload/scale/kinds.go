// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// fresh is how long it is remembered whether a kind can be scaled, since CRDs may change.
const fresh = 5 * time.Minute

// kinds remembers which resources have the subresource scale. Reading a subresource that
// does not exist gives the same error as an object that does not exist. So kinds reads
// discovery.
type kinds struct {
	discovery discovery.ServerResourcesInterface

	mu    sync.Mutex
	known map[schema.GroupVersionResource]answer
}

type answer struct {
	scale bool
	at    time.Time
}

func (k *kinds) haveScale(resource schema.GroupVersionResource) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, ok := k.known[resource]; ok && time.Since(a.at) < fresh {
		return a.scale, nil
	}
	list, err := k.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("asking whether %s can be scaled: %w", resource.GroupResource(), err)
	}
	a := answer{at: time.Now()}
	if list != nil {
		for i := range list.APIResources {
			name, sub, _ := strings.Cut(list.APIResources[i].Name, "/")
			a.scale = a.scale || name == resource.Resource && sub == "scale"
		}
	}
	k.known[resource] = a
	return a.scale, nil
}
