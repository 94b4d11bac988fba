// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// paused is a round of a workload whose strategy pauses it.
type paused struct {
	one
	e  *engine.Engine
	at int64
}

func (p paused) ExplainPod(_, name string) (explain.Answer, bool) {
	subject := decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}
	in := rollout.PlanInput{Update: 3, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate", Paused: true}}
	return explain.Answer{Verdict: explain.Held, Decided: time.Unix(p.at, 0), Basis: &whatif.Basis{Engine: p.e, Records: []decision.Record{{
		Point: rollout.PlanPoint().Name, Subject: subject, Revision: p.e.ActiveSnapshot().RevisionFor(subject), Input: in,
	}}}}, name == "web-1"
}

func newTestEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := rules.Engine(t, "")
	return e
}

func pausedStore(e *engine.Engine, at int64) *explain.Store {
	store := explain.NewStore()
	store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, paused{e: e, at: at})
	subject := decision.Subject{Kind: "Pod", Namespace: "shop", Name: "db-0"}
	store.PutRefusal(explain.Answer{
		Subject: subject, Decided: time.Unix(at, 0), Request: &explain.Request{UID: "r1", User: "bob", Resource: "pods"},
		Basis: &whatif.Basis{Engine: e, Records: []decision.Record{{
			Point: protection.BudgetPoint().Name, Subject: subject, Revision: e.ActiveSnapshot().RevisionFor(subject),
			Input: protection.BudgetInput{
				Request: protection.Request{Operation: protection.Evict, User: protection.User{Name: "bob"}},
				Object:  protection.Object{Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "db-0"},
				Pod:     protection.PodState{Ready: true, Consistent: true}, Budget: &protection.Budget{Name: "db", Total: 3, Desired: 3, Current: 3},
			},
		}}},
	})
	return store
}

// Who may ask why may ask what if, and nobody else.
func TestWhatIf(t *testing.T) {
	s := &Server{Store: pausedStore(newTestEngine(t), 1), Replica: "manager-x", Who: named(), May: authorizer.AuthorizerFunc(mayGetAll)}
	handler := s.newHTTPServer(nil).Handler
	for name, tc := range map[string]struct {
		query, user string
		changes     []string
		code        int
		want        string
	}{
		"a fact releases a pod":                      {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"strategy.paused=false"}, 200, `"was":"Hold","is":"Go","gone":[{"rule":"rollout.plan.paused"`},
		"several facts":                              {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"strategy.paused-", "update=1"}, 200, `"fields":[{"name":"limit","was":"0","is":"1"}]`},
		"a fact changes nothing":                     {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"workload.labels.a=b"}, 200, `"changed":false`},
		"an unknown fact":                            {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"strategy.pause=true"}, 200, `"invalid":"strategy.pause is no fact of rollout/plan`},
		"an object without a decision":               {"kind=CloneSet&namespace=shop&name=web", "jane", []string{"update=1"}, 200, `"error":"no decision of a policy is remembered`},
		"a request":                                  {"request=r1&namespace=shop", "jane", []string{"budget.allowed=1"}, 200, `"was":"Deny","is":"Allow"`},
		"who asks may not be another":                {"request=r1&namespace=shop", "jane", []string{`request.user={"name":"x"}`}, 200, `request.user may not be changed`},
		"nor the namespace":                          {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"workload.namespace=other"}, 200, `workload.namespace may not be changed`},
		"a value that the answer does not have":      {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"strategy.paused=false"}, 200, `{"name":"strategy.paused","is":"false","hidden":true}`},
		"all requests of a user":                     {"user=bob&namespace=shop", "jane", []string{"budget.allowed=1"}, 400, "not about all requests of a user"},
		"nothing is asked":                           {"kind=Pod&namespace=shop&name=web-1", "jane", nil, 200, `"verdict":"Held"`},
		"text that is no change":                     {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"update"}, 400, "parameter if: "},
		"too many":                                   {"kind=Pod&namespace=shop&name=web-1", "jane", make([]string, whatif.MaxChanges+1), 400, "at most 16 may be"},
		"too large":                                  {"kind=Pod&namespace=shop&name=web-1", "jane", []string{"a=" + strings.Repeat("x", whatif.MaxBytes)}, 400, "may have at most 4096"},
		"that of a request":                          {"request=r1&namespace=shop", "jane", []string{"update"}, 400, "parameter if: "},
		"of an object that the user may not get":     {"kind=Pod&namespace=shop&name=secret", "jane", []string{"update=1"}, 403, "may not get"},
		"by a user who may not ask":                  {"kind=Pod&namespace=shop&name=web-1", "eve", []string{"update=1"}, 403, "may not get explanations"},
		"by a user who may not ask, and is mistyped": {"kind=Pod&namespace=shop&name=web-1", "eve", []string{"update"}, 403, "may not get explanations"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := url.Parse(urlOf(tc.query))
			if err != nil {
				t.Fatal(err)
			}
			values := target.Query()
			values["if"] = tc.changes
			target.RawQuery = values.Encode()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target.String(), nil)
			req.Header.Set("Authorization", "Bearer "+tc.user)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			body := w.Body.String()
			if w.Code != tc.code || !strings.Contains(body, tc.want) || strings.Contains(body, "whatIf") != (tc.code == 200 && tc.changes != nil) {
				t.Errorf("%d %.2000s", w.Code, body)
			}
		})
	}
}

// The manager whose answer is the newest decides again, with its own policies.
func TestAnotherManagerDecidesAgain(t *testing.T) {
	e := newTestEngine(t)
	peer := peerOf(t, "second", pausedStore(e, 20), nil)
	s := &Server{
		Store: pausedStore(e, 10), Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(allowAll),
		Peers: func(context.Context) ([]replicas.Replica, error) { return []replicas.Replica{peer}, nil },
	}
	q := explain.Question{Kind: "Pod", Namespace: "shop", Name: "web-1", If: []string{"strategy.paused=false"}}
	w := answerTo(t, s.newHTTPServer(nil).Handler, urlOf(q.QueryValues().Encode()))
	var reply explain.Reply
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		t.Fatal(err)
	}
	if a := reply.Answer; a.Replica != "second" || a.WhatIf == nil || len(a.WhatIf.Decisions) != 1 || a.WhatIf.Decisions[0].Is != "Go" {
		t.Errorf("%d %s", w.Code, w.Body.String())
	}
}

// One question at a time evaluates policies; another one is answered without.
func TestDecidingAgainIsBusy(t *testing.T) {
	s := &Server{Store: pausedStore(newTestEngine(t), 1), Replica: "manager-x", Who: named(), May: authorizer.AuthorizerFunc(allowAll)}
	handler := s.newHTTPServer(nil).Handler
	s.finding <- struct{}{}
	q := explain.Question{Kind: "Pod", Namespace: "shop", Name: "web-1", If: []string{"update=1"}}
	if w := answerTo(t, handler, urlOf(q.QueryValues().Encode())); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "manager-x answers other such questions") {
		t.Errorf("%d %s", w.Code, w.Body.String())
	}
}
