// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// absence is since when no runtime answers for a request, by the clock of this process: the clock of
// the API server, which dates requests, may differ.
type absence struct {
	request types.UID
	since   time.Time
}

func podKey(r *kruise.ContainerRecreateRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.PodName}
}

// absentSince returns since when no runtime answers for a request.
func (a *Agent) absentSince(r *kruise.ContainerRecreateRequest) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, known := a.absences[podKey(r)]; known && at.request == r.UID {
		return at.since
	}
	now := a.now()
	a.absences[podKey(r)] = absence{r.UID, now}
	return now
}

// clearAbsence forgets that no runtime answered for the requests of a pod.
func (a *Agent) clearAbsence(pod types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.absences, pod)
}
