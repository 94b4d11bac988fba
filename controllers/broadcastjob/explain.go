// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
)

// storeExplanation stores the explanation of the state of a job.
func (r *Reconciler) storeExplanation(c *change) {
	s := &c.status
	waiting := max(s.Desired-s.Active-s.Succeeded-s.Failed, 0)
	a := explain.Answer{
		Subject: decisionSubject(c.job), Decided: c.now.Time, Verdict: explain.Running, Reason: string(s.Phase),
		Message: fmt.Sprintf("Of %d nodes %d have succeeded and %d have failed; pods run or start on %d, and %d wait for theirs.", s.Desired, s.Succeeded, s.Failed, s.Active, waiting),
	}
	single := &explain.Single{Engine: r.Engine, Without: []string{"nodes", "count(nodes)", "job.namespace", "job.name"}}
	switch h := c.held; {
	case s.Phase == kruise.BroadcastJobPhaseCompleted, s.Phase == kruise.BroadcastJobPhaseFailed:
		a.Verdict = explain.Ended
		for _, kind := range []kruise.JobConditionType{kruise.BroadcastJobComplete, kruise.BroadcastJobFailed} {
			if end := jobcondition.Find(s.Conditions, kind); end != nil && end.Status == corev1.ConditionTrue && end.Message != "" {
				a.Message = strings.TrimSuffix(end.Message, ".") + ". " + a.Message
			}
		}
	case s.Phase == kruise.BroadcastJobPhasePaused:
		a.Verdict = explain.Paused
		why := "No pod is created while spec.paused is true."
		if failed := jobcondition.Find(s.Conditions, kruise.BroadcastJobPausedByFailure); failed != nil {
			why = failed.Message
		}
		a.Message = why + " " + a.Message
	case h != nil:
		a.Verdict, a.Rule, a.Reason, a.Until = explain.Held, h.Rule, h.Reason, h.Until
		a.Message = h.Message + " " + a.Message
		single.Record = c.decided // the record has all nodes, so it is stored only for this state
	default:
		if stuck := stuckMessage(s); stuck != "" {
			a.Message = stuck + ". " + a.Message
		}
	}
	single.Answer = a
	r.Rounds.PutRound(a.Subject, single)
}
