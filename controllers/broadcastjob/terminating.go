// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// podsStuckTerminating is the condition of a job that waits for pods whose grace period is over, such as those of a node that
// is gone for good. It is the reason of its event, too.
const podsStuckTerminating = "PodsStuckTerminating"

// terminationSlack is how long a pod may exist after its grace period.
const terminationSlack = time.Minute

// reportStuckPods reports the terminating pods that a job waits for longer than they should take. It returns when the next pod
// becomes stuck, 0 if none can.
func (r *Reconciler) reportStuckPods(s *state, next *change) (again time.Duration) {
	var stuck []string
	for _, pod := range s.terminating {
		if left := pod.DeletionTimestamp.Add(terminationSlack).Sub(s.now); left > 0 {
			again = requeue.EarliestDelay(again, left)
			continue
		}
		stuck = append(stuck, fmt.Sprintf("%s on node %s", pod.Name, pod.Spec.NodeName))
	}
	if len(stuck) == 0 {
		next.removeCondition(podsStuckTerminating)
		return again
	}
	text := fmt.Sprintf("The job waits for %d pods that were deleted and whose grace period is over, since their node does not answer or they have finalizers. "+
		"It goes on when they, or their nodes, are gone: %s", len(stuck), message.ListNames(stuck))
	if next.setCondition(podsStuckTerminating, podsStuckTerminating, text) {
		next.addEvent(corev1.EventTypeWarning, podsStuckTerminating, text)
	}
	return again
}

// stuckMessage is what reportStuckPods has reported; empty if nothing.
func stuckMessage(s *kruise.BroadcastJobStatus) string {
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == podsStuckTerminating {
			return c.Message
		}
	}
	return ""
}
