// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// nodesAgain is how soon the nodes of containers that have not ended are checked again: the pods of a node that is gone for good, but not
// deleted, do not change.
const nodesAgain = time.Minute

// loseNodes finds the pods whose containers have begun, or are to begin, on a node that is not ready: such a node does not report their end. If
// the user set no deadline, these pods fail after some time of the job, since nothing else would end the job. It returns when to reconcile again,
// 0 for not at all.
func (r *Reconciler) loseNodes(ctx context.Context, s *state, next *change) (again time.Duration, err error) {
	known := map[string]*corev1.Node{}
	var waits []string
	for i, pod := range s.candidates {
		name := pod.Spec.NodeName
		if state := s.states[i]; name == "" || state != added && state != waiting && state != running {
			continue
		}
		node, ok := known[name]
		if !ok {
			if node, err = nodes.FindNode(ctx, r.Client, r.Live, name); err != nil {
				return 0, err
			}
			known[name] = node
		}
		again = requeue.EarliestDelay(again, nodesAgain)
		if node == nil { // the control plane deletes the node's pods
			continue
		}
		switch at := nodes.LostAt(node, next.status.StartTime.Time); {
		case at.IsZero():
			continue
		case s.job.Spec.ActiveDeadlineSeconds == nil && !at.After(s.now):
			s.states[i] = lost
			continue
		case s.job.Spec.ActiveDeadlineSeconds == nil:
			again = requeue.EarliestDelay(again, at.Sub(s.now))
		}
		waits = append(waits, fmt.Sprintf("%s (node %s)", pod.Name, name))
	}
	if len(waits) == 0 {
		next.removeCondition(kruise.EphemeralJobWaitingForNodes)
		return again, nil
	}
	text := "The nodes of these pods are not ready, so nothing tells how their containers end: " + message.ListNames(waits) + "."
	if s.job.Spec.ActiveDeadlineSeconds == nil {
		text += fmt.Sprintf(" A pod fails once its node has not been ready for %s of the job.", nodes.ResponseTime)
	}
	next.setCondition(kruise.EphemeralJobWaitingForNodes, kruise.EphemeralJobNodeNotReadyReason, message.Shorten(text))
	return again, nil
}

// whyFailed says why a pod has failed whose containers did not end.
func (s *state) whyFailed(i int) string {
	pod := s.candidates[i]
	if s.states[i] == lost {
		return fmt.Sprintf("node %s of pod %s is not ready for longer than %s", pod.Spec.NodeName, pod.Name, nodes.ResponseTime)
	}
	return s.memory.whyUnable(pod)
}
