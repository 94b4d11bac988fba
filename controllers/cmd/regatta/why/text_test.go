// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
)

func TestText(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	web := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}
	pod := decision.Subject{Kind: "Pod", Namespace: "shop", Name: "web-1"}
	base := explain.Answer{Workload: web, Decided: now.Add(-3 * time.Second), Replica: "manager-x", Policies: "a55cd953ea87", Outcome: decision.Decided}
	with := func(s decision.Subject, change func(*explain.Answer)) explain.Answer {
		a := base
		a.Subject = s
		change(&a)
		return a
	}
	tests := []struct {
		name  string
		reply explain.Reply
		text  text
		want  string
	}{
		{
			name: "a pod that a rule holds until a time",
			reply: explain.Reply{Answer: with(pod, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message = explain.Held, "ChangeFreeze", "Nothing changes at the weekend, so that those on call have one too, and this is a sentence that does not fit."
				a.Rule, a.Title, a.Place, a.Bundle = "change-freeze.weekend", "At the weekend", "freeze.rego:12:1", "freeze@1a2b3c"
				a.From, a.To, a.Until = "web-a", "web-b", "2026-11-23T08:00:00Z"
				a.Facts = []explain.Fact{{Name: "now", Value: "1795255200000000000"}, {Name: "groups.zone.a", Value: `{"total":3,"updated":1}`}, {Name: "pod.zone", Value: "b"}}
				a.Others = []decision.Hold{{Rule: "one-zone.other", Reason: "OtherZoneFirst", Message: "Zone a first."}}
				a.Rules = []string{"x"}
			})},
			want: `
Pod shop/web-1 is HELD (ChangeFreeze)
  Nothing changes at the weekend, so that those on call have one too, and this
  is a sentence that does not fit.

  rule          change-freeze.weekend - At the weekend
                freeze.rego:12:1, bundle freeze@1a2b3c
  revision      web-a -> web-b
  workload      CloneSet shop/web
  may change    at 2026-11-23T08:00:00Z (in 46h)
  also held by  one-zone.other (OtherZoneFirst): Zone a first.
  facts         now=2026-11-21T10:00:00Z  groups.zone.a={total:3,updated:1}
                pod.zone=b
  decided       3s ago by manager-x, policies a55cd953ea87
`,
		},
		{
			name: "a pod, and what is nearest to another answer",
			reply: explain.Reply{Answer: with(pod, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message, a.Rule = explain.Held, "TooMany", "There are too many.", "near.many"
				a.Nearest = &nearest.Result{
					Now: []nearest.Rule{{Rule: "near.many", Title: "Many", Wish: "hold", Conditions: []nearest.Condition{
						{Text: "input.update > limit", Why: "input.update is 7, and this ends when it is at most 5"}, {Text: "a"}, {Text: "b"}, {Text: "c"},
					}}},
					Almost:  []nearest.Rule{{Rule: "near.note", Wish: "hold", Conditions: []nearest.Condition{{Text: "input.note", Why: "input.note is not there"}}}},
					Partial: true,
				}
			})},
			want: `
Pod shop/web-1 is HELD (TooMany)
  There are too many.

  rule          near.many
  workload      CloneSet shop/web
  may change    when the facts below do
  nearest       near.many - Many holds while all of this is so:
                  update > limit: update is 7, and this ends when it is at
                    most 5
                  a
                  b
                  and 1 more
                near.note would hold if this were so too:
                  note: note is not there
                There was no time to look at all rules.
  decided       3s ago by manager-x, policies a55cd953ea87
`,
		},
		{
			name: "a request that was refused, and others before it",
			reply: explain.Reply{
				Answer: with(decision.Subject{Kind: "Namespace", Name: "shop"}, func(a *explain.Answer) {
					a.Workload = a.Subject
					a.Verdict, a.Reason, a.Message, a.Rule, a.Title = explain.Refused, "Protected", "It is to stay.", "protection.deletion.always", "Always"
					a.Request = &explain.Request{UID: "r-2", Operation: "DELETE", User: "ann", Resource: "namespaces"}
					a.Facts = []explain.Fact{{Name: "object.labels", Value: `{"a":"b"}`}}
				}),
				Refusals: []explain.Answer{with(pod, func(a *explain.Answer) {
					a.Verdict, a.Reason, a.Decided = explain.Exempted, "BreakGlass", now.Add(-time.Hour)
					a.Request = &explain.Request{UID: "r-1", Operation: "EVICT", DryRun: true, User: "bob", Resource: "pods"}
				})},
			},
			want: `
DELETE of Namespace shop was REFUSED (Protected)
  It is to stay.

  rule          protection.deletion.always - Always
  asked by      ann
  request       r-2
  facts         object.labels={a:b}
  decided       3s ago by manager-x, policies a55cd953ea87

REFUSED  OPERATION        OBJECT          USER  REASON                 REQUEST
60m ago  EVICT (dry run)  Pod shop/web-1  bob   BreakGlass (exempted)  r-1
`,
		},
		{
			name: "a pod that waits for others has no rule, and one that is held without a time waits for facts",
			reply: explain.Reply{Answer: with(pod, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message, a.Rule = explain.Waiting, "MaxUnavailableReached", "It waits.", decision.RuleWalk
				a.From, a.To = "web-b", "web-b"
			})},
			want: `
Pod shop/web-1 is WAITING (MaxUnavailableReached)
  It waits.

  revision      web-b
  workload      CloneSet shop/web
  decided       3s ago by manager-x, policies a55cd953ea87
`,
		},
		{
			name: "a decision that was not made",
			reply: explain.Reply{Answer: with(pod, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message, a.Rule = explain.Held, "NoDecision", "No policy could decide.", "engine"
				a.Outcome, a.Error, a.Until = decision.TimedOut, "no answer within 100ms", "2026-11-21T09:00:00Z"
				a.Rules = []string{"rollout.plan", "rollout.rank"}
			})},
			text: text{all: true},
			want: `
Pod shop/web-1 is HELD (NoDecision)
  No policy could decide.

  rule          engine
  workload      CloneSet shop/web
  may change    at 2026-11-21T09:00:00Z, which is past; it is about to be
                decided again
  rules         rollout.plan, rollout.rank
  no decision   Timeout: no answer within 100ms. What holds is the fallback.
  decided       3s ago by manager-x, policies a55cd953ea87
`,
		},
		{
			name: "a WorkloadSpread, which counts no ready pods, has no column READY",
			reply: explain.Reply{Answer: with(web, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message = explain.Placed, "Spread", "3 pods are in its subsets."
				a.Subsets = []explain.Subset{{Name: "first", Replicas: 2, Rule: "placement.subset", Message: "at most 2"}, {Name: "second", Replicas: 1, Rule: "placement.subset", Message: "no limit"}}
			})},
			want: `
CloneSet shop/web is PLACED (Spread)
  3 pods are in its subsets.

  decided       3s ago by manager-x, policies a55cd953ea87

SUBSET  PODS  RULE              BECAUSE
first   2     placement.subset  at most 2
second  1     placement.subset  no limit
`,
		},
		{
			name: "a UnitedDeployment whose pods are not ready has the column READY",
			reply: explain.Reply{Answer: with(web, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message = explain.Placed, "Placed", "Its subset gets 2 pods."
				a.Subsets = []explain.Subset{{Name: "a", Replicas: 2, Ready: new(int), Message: "at least 0"}}
			})},
			want: `
CloneSet shop/web is PLACED (Placed)
  Its subset gets 2 pods.

  decided       3s ago by manager-x, policies a55cd953ea87

SUBSET  PODS  READY  RULE  BECAUSE
a       2     0            at least 0
`,
		},
		{
			name: "a CloneSet with what its pods wait for, and its conditions",
			reply: explain.Reply{Answer: with(web, func(a *explain.Answer) {
				a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", "1 of 4 pods are updated."
				a.From, a.To = "web-a", "web-b"
				a.Pods = map[explain.Verdict]int{explain.Held: 2, explain.Waiting: 1, explain.UpToDate: 1}
				a.Why = []explain.ReasonCount{
					{Verdict: explain.Held, Reason: "OtherZoneFirst", Rule: "one-zone.other", Message: "Zone a first.", Pod: "web-2", Pods: 2},
					{Verdict: explain.Waiting, Reason: "MaxUnavailableReached", Rule: decision.RuleWalk, Message: "It waits.", Pod: "web-1", Pods: 1},
				}
				a.Groups = map[string]map[string]rollout.Group{"zone": {"b": {Total: 2}, "a": {Total: 1, Updated: 1, Unavailable: 1}, "": {Total: 1}}}
				a.Others = []decision.Hold{{Rule: "one-zone.other", Reason: "OtherZoneFirst", Message: "Zone a first."}, {Rule: "x", Reason: "X", Message: "Something else."}}
			}), Pods: []explain.Answer{
				{Subject: pod, Verdict: explain.Waiting, Reason: "MaxUnavailableReached", From: "web-a", Rule: decision.RuleWalk},
				{Subject: decision.Subject{Name: "web-2"}, Verdict: explain.Held, Reason: "OtherZoneFirst", From: "web-a", Rule: "one-zone.other"},
			}},
			text: text{conditions: []kinds.Condition{
				{Type: "UpdateHeld", Status: "True", Reason: "OtherZoneFirst", Message: "Zone a first.", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))},
				{Type: "FailedScale", Status: "True", Reason: "FailedScale", Message: "no quota", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
			}},
			want: `
CloneSet shop/web is UPDATING (RolloutInProgress)
  1 of 4 pods are updated.

  pods          2 held, 1 waiting, 1 up to date
  because       2 held: OtherZoneFirst, rule one-zone.other, such as web-2
                  Zone a first.
                1 waiting: MaxUnavailableReached, such as web-1
                  It waits.
  zones         (none) 0/1 updated; a 1/1 updated, 1 unavailable; b 0/2 updated
  revision      web-a -> web-b
  also held by  x (X): Something else.
  conditions    UpdateHeld=True for 60s (OtherZoneFirst)
                FailedScale=True for 60m (FailedScale): no quota
  decided       3s ago by manager-x, policies a55cd953ea87

POD    VERDICT  REASON                 REVISION  RULE
web-1  waiting  MaxUnavailableReached  web-a
web-2  held     OtherZoneFirst         web-a     one-zone.other
`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tx := tc.text
			tx.now, tx.width, tx.paint = now, 80, func(_ explain.Verdict, s string) string { return s }
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), tx.renderReply(tc.reply)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
