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

// longestRestart is how long a request counts that does not end, such as one whose node has no agent: its pod runs on, and a rollout
// must not wait for it indefinitely.
const longestRestart = 10 * time.Minute

// restartsUnderWay are the names of pods whose restart in place was asked for and has not ended: they are available
// still, or say so, and are about to be unavailable. All that spends maxUnavailable counts them, so that a rollout or a
// scale-in beside a restart does not spend it twice, and so do restarts that their workload no longer asks for.
func (r *Round) restartsUnderWay(ctx context.Context) (map[string]bool, error) {
	if _, guest := r.c.kind.(KindWithSharedPods); guest {
		return nil, nil
	}
	if _, asked := r.Workload.GetAnnotations()[kruise.RestartInPlaceKey]; !asked && r.c.agents == nil && len(r.memory.requested) == 0 {
		return nil, nil // no restart was ever asked for
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
		r.RequeueAfter(restartAgain) // nothing else reports the end of a restart that its workload no longer asks for
	}
	return out, nil
}

// isOverdue reports whether a request is older than a restart may take.
func isOverdue(o *kruise.ContainerRecreateRequest, now time.Time) bool {
	return !o.CreationTimestamp.IsZero() && now.Sub(o.CreationTimestamp.Time) > longestRestart
}

// IsRestarting reports whether a restart in place of a pod is under way.
func (f *Facts) IsRestarting(p *facts.Pod) bool {
	return f.restarting[p.Name] || f.restarting[shortenPodName(p.Name)]
}
