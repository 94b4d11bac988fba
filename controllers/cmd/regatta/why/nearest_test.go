// SPDX-License-Identifier: Apache-2.0

package why

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/rules"
)

// TestNearestOfExamples asks the policies of the cookbook beside the built-in ones.
func TestNearestOfExamples(t *testing.T) {
	saturday := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	rollout := points.PlanInput{
		Workload: points.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web", Replicas: 10},
		Strategy: points.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible"}, Revisions: points.Revisions{Current: "web-1", Update: "web-2"},
		Counts: points.Counts{Total: 10}, Update: 9, MaxUnavailable: 2,
		Groups: map[string]map[string]points.Group{"zone": {"a": {Total: 5, Updated: 3}, "b": {Total: 5}}},
	}
	at := func(now time.Time) points.PlanInput {
		in := rollout
		in.Now = now.UnixNano()
		return in
	}
	eviction := protection.BudgetInput{
		Now:     saturday.UnixNano(),
		Request: protection.Request{Operation: protection.Evict, User: protection.User{Name: "ann", Groups: []string{"dev"}}},
		Object: protection.Object{Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-1",
			Labels: map[string]string{"shop.example/surge-first": "true"}},
		Pod:    protection.PodState{Ready: true, Consistent: true},
		Budget: &protection.Budget{Name: "web", Desired: 8, Allowed: 2, Total: 10, Current: 10},
	}
	used := eviction
	used.Budget = &protection.Budget{Name: "web", Desired: 8, Total: 10, Current: 8}
	used.Object.Annotations = map[string]string{"policy.kruise.io/break-glass": "INC-7"}
	for _, tc := range []struct {
		name, example string
		point         decision.UntypedPoint
		in            any
		want          string
	}{
		{"a Saturday of the change freeze", "change-freeze", points.PlanPoint().EraseTypes(), at(saturday), `
  nearest       change-freeze.closed - Closed now holds while all of this is so:
                  not workload.namespace in calendar.except: workload.namespace is "shop", and
                    this ends when it is one of ["playground"]
                  cause: cause is "Saturday is not a working day"
                    cause (change-freeze.rego:29:3) while all of this is so:
                      weekday in calendar.weekend: weekday is "Saturday", and this ends when it is
                        none of ["Saturday","Sunday"]
                        weekday is time.weekday([now, calendar.timezone])
                          (change-freeze.rego:43:1): now is 2026-03-14T12:00:00Z, calendar.timezone
                          is "Europe/Berlin"
`},
		{"working hours of the change freeze", "change-freeze", points.PlanPoint().EraseTypes(), at(saturday.AddDate(0, 0, -4)), `
  nearest       change-freeze.closed - Closed now would hold if this were so too:
                  cause: cause is not there
                    cause (change-freeze.rego:27:1) if this were so too:
                      calendar.dates[today]: calendar.dates["2026-03-10"] is not there
                        today is time.format([now, calendar.timezone, "2006-01-02"])
                          (change-freeze.rego:41:1): now is 2026-03-10T12:00:00Z, calendar.timezone
                          is "Europe/Berlin"
                    cause (change-freeze.rego:29:3) if this were so too:
                      weekday in calendar.weekend: weekday is "Tuesday", and would have to be one
                        of ["Saturday","Sunday"]
                        weekday is time.weekday([now, calendar.timezone])
                          (change-freeze.rego:43:1): now is 2026-03-10T12:00:00Z, calendar.timezone
                          is "Europe/Berlin"
                    cause (change-freeze.rego:31:3) if this were so too:
                      not in_hours
                        in_hours (change-freeze.rego:35:1) while all of this is so:
                          clock >= calendar.hours.from: clock is "13:00", and this ends when it is
                            less than "09:00"
                          clock < calendar.hours.to: clock is "13:00", and this ends when it is at
                            least "17:00"
`},
		{"a zone that comes first", "one-zone-at-a-time", points.PlanPoint().EraseTypes(), at(saturday), `
  nearest       one-zone-at-a-time.other-zone - Another zone first holds while all of this is so:
                  first := min(unfinished): first is "a", unfinished is ["a","b"]
                    unfinished contains "a" (one-zone-at-a-time.rego:32:1) while all of this is
                      so:
                      pods.updated < pods.total: pods.updated is 3, and this ends when it is at
                        least 5
                      update > 0: update is 9, and this ends when it is at most 0
                  update != 0: update is 9, and this ends when it is equal to 0
                  zone != first: zone is "b", and this ends when it is equal to "a"
                  and 2 more
`},
		{"an eviction without a spare replica", "surge-before-evict", protection.BudgetPoint().EraseTypes(), eviction, `
  nearest       surge-before-evict.no-spare - No spare replica refuses while all of this is so:
                  not spare
                    spare (surge-before-evict.rego:58:1) if this were so too:
                      budget.allowed > budget.total - budget.desired: budget.allowed is 2, and
                        would have to be more than 2
                  budget.desired > 0: budget.desired is 8, and this ends when it is at most 0
                  concerned (surge-before-evict.rego:43:1) while all of this is so:
                    request.operation == "EVICT": request.operation is "EVICT", and this ends when
                      it is other than "EVICT"
                    object.kind == "Pod": object.kind is "Pod", and this ends when it is other
                      than "Pod"
                    object.labels["shop.example/surge-first"] == "true":
                      object.labels["shop.example/surge-first"] is "true", and this ends when it is
                      other than "true"
                    pod.ready: pod.ready is true
                surge-before-evict.no-budget - The replicas are not counted would refuse if this
                were so too:
                  not budget: budget is
                    {"allowed":2,"current":10,"desired":8,"ignored":false,"name":"web","records":0,"total":10}
`},
		{"a budget that is used up, and a glass that is not for everybody", "break-glass", protection.BudgetPoint().EraseTypes(), used, `
  nearest       protection.budget.exceeded - The budget is used up decides while all of this is so:
                  budget.allowed <= 0: budget.allowed is 0, and this ends when it is more than 0
                  budget_list: budget_list is "disruptedPods"
                    budget_list (protection/budget.rego:336:3) while all of this is so:
                      is_string(request.operation): request.operation is "EVICT"
                protection.break-glass.not-allowed - The glass is not for this user decides while
                all of this is so:
                  user_glass != "": user_glass is "INC-7", and this ends when it is equal to ""
                    user_glass is trim_space(object.annotations["policy.kruise.io/break-glass"])
                      (protection/users.rego:108:1):
                      object.annotations["policy.kruise.io/break-glass"] is "INC-7"
                  not user_may_break_glass
                    user_may_break_glass (protection/users.rego:110:1) if this were so too:
                      request.user.name in names: request.user.name is "ann", and would have to be
                        one of ["ann@shop.example"]
                    user_may_break_glass (protection/users.rego:117:1) if this were so too:
                      group in names: group is "dev", and would have to be one of ["shop:on-call"]
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files, err := fs.Sub(policies.Examples, path.Join("examples", tc.example))
			if err != nil {
				t.Fatal(err)
			}
			b, err := bundle.FromFS(tc.example, files)
			if err != nil {
				t.Fatal(err)
			}
			e := rules.Engine(t, "")
			if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
				t.Fatal(err)
			}
			_, r := engine.DecideOn(t.Context(), e, e.ActiveSnapshot(), tc.point, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, tc.in)
			n, err := nearest.FindConditions(t.Context(), e, r)
			if err != nil {
				t.Fatal(err)
			}
			tx := text{width: 100}
			tx.writeNearest(&n)
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), strings.Join(tx.lines, "\n")+"\n"); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
