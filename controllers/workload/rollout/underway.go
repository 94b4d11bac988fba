// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// longestRestart is how long a request counts that does not end, for example because its node has no agent. Its pod keeps running, and a rollout
// must not wait for it indefinitely.
const longestRestart = 10 * time.Minute

// restartsUnderWay returns the names of pods whose restart in place was requested and has not ended. They may still be
// available, or reported as such, and are about to become unavailable. All that uses up maxUnavailable counts them, so that a rollout or a
// scale-in beside a restart does not use it twice. Restarts that their workload no longer requests count as well.
func (r *Round) restartsUnderWay(ctx context.Context) (map[string]bool, error) {
	if _, guest := r.c.kind.(KindWithSharedPods); guest {
		return nil, nil
	}
	if _, asked := r.Workload.GetAnnotations()[kruise.RestartInPlaceKey]; !asked && r.c.agents == nil && len(r.memory.requested) == 0 {
		return nil, nil // no restart was ever requested
	}
	list := &kruise.ContainerRecreateRequestList{}
	err := r.c.Client.List(ctx, list, client.InNamespace(r.Workload.GetNamespace()), client.MatchingLabels{kruise.RestartOfKey: string(r.Workload.GetUID())}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the ContainerRecreateRequests of restarts: %w", err)
	}
	out, seen := map[string]bool{}, map[string]bool{}
	for i := range list.Items {
		o := &list.Items[i]
		seen[o.Name] = true
		if o.Status.CompletionTime == nil && o.DeletionTimestamp == nil && !isOverdue(o, r.Now) {
			out[o.Spec.PodName] = true
		}
	}
	maps.DeleteFunc(r.memory.requested, func(name string, since time.Time) bool { return seen[name] || r.Now.Sub(since) > r.c.timeout })
	for name := range r.memory.requested { // the cache does not show the request yet
		if end := strings.LastIndex(name, restartInfix); end >= 0 {
			out[name[:end]] = true
		}
	}
	if len(out) > 0 {
		r.RequeueAfter(restartAgain) // no event reports the end of a restart that its workload no longer requests
	}
	return out, nil
}

// isOverdue reports whether a request is older than longestRestart.
func isOverdue(o *kruise.ContainerRecreateRequest, now time.Time) bool {
	return !o.CreationTimestamp.IsZero() && now.Sub(o.CreationTimestamp.Time) > longestRestart
}

// IsRestarting reports whether a restart in place of a pod is under way.
func (f *Facts) IsRestarting(p *facts.Pod) bool {
	return f.restarting[p.Name] || f.restarting[shortenPodName(p.Name)]
}
