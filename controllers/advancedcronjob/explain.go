// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// verdict is the state of an AdvancedCronJob, and the reason for it.
type verdict struct {
	is              explain.Verdict
	reason, message string
}

// currentVerdict is the verdict on an AdvancedCronJob that has a valid schedule and is not paused.
func (c *change) currentVerdict() verdict {
	switch active := referenceNames(c.status.Active); {
	case c.held != nil:
		return verdict{explain.Held, c.held.Reason, c.held.Message}
	case len(active) > 0:
		return verdict{explain.Running, "Active", fmt.Sprintf("Of the runs that were started these have not ended: %s.", message.ListNames(active))}
	}
	return verdict{explain.Waiting, "NotDue", "No run is due."}
}

// storeExplanation stores the explanation of the state. left is the time until the next run of the
// schedule; 0 if there is none.
func (r *Reconciler) storeExplanation(next *change, v verdict, left time.Duration) {
	a := explain.Answer{Subject: decisionSubject(next.job), Decided: next.now.Time, Verdict: v.is, Reason: v.reason, Message: v.message}
	if c := meta.FindStatusCondition(next.status.Conditions, kruise.AdvancedCronJobRunLeftOut); c != nil {
		a.Message += " The last one that never started: " + c.Message
	}
	if left > 0 {
		a.Until = next.now.Add(left).UTC().Format(time.RFC3339)
	}
	single := &explain.Single{Answer: a, Engine: r.Engine}
	if next.held != nil {
		single.Answer.Rule, single.Record = next.held.Rule, next.decided
		if next.held.Until != "" {
			single.Answer.Until = next.held.Until
		}
	}
	r.Rounds.PutRound(a.Subject, single)
}
