// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Refusals that the caller may not know of hide none of those that they may, however many there are; but no question asks the API
// server without end.
func TestRefusalsThatMayNotBeReadHideNoOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		readable, hidden int // the hidden ones are later
		bytes            int // of each
		told             int
		warned           string
	}{
		"as many as one page has":           {readable: 1, hidden: refusalsTold, told: 1},
		"many pages":                        {readable: 3, hidden: 450, told: 3},
		"pages of few, since they are long": {readable: 3, hidden: 30, bytes: 50 << 10, told: 3},
		"more than are looked at":           {readable: 1, hidden: objectsChecked, warned: "ask about one namespace"},
		"none that may be read":             {hidden: 50},
	} {
		t.Run(name, func(t *testing.T) {
			store := explain.NewStore()
			put := func(what string, n int) {
				for i := range n {
					store.PutRefusal(explain.Answer{
						Decided: time.Unix(int64(i), 0), Subject: decision.Subject{Namespace: "shop", Name: fmt.Sprint(what, "-", i)}, Message: strings.Repeat("x", tc.bytes),
						Request: &explain.Request{UID: fmt.Sprint(what, "-", i), User: "bob", Resource: "pods"},
					})
				}
			}
			put("readable", tc.readable)
			put("hidden", tc.hidden)
			s := &Server{Store: store, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetAPIGroup() == explain.Group || strings.HasPrefix(a.GetName(), "readable") {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})}
			w := answerTo(t, s.server(nil).Handler, urlOf("user=bob&skip=1000"))
			if (w.Code == http.StatusOK) != (tc.told > 0) {
				t.Fatalf("%d %.300s", w.Code, w.Body.String())
			}
			if warnings := strings.Join(w.Header().Values("Warning"), "; "); (warnings != "") != (tc.warned != "") || !strings.Contains(warnings, tc.warned) {
				t.Errorf("warnings %q, want %q", warnings, tc.warned)
			}
			if tc.told == 0 {
				return
			}
			var reply explain.Reply
			if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || 1+len(reply.Refusals) != tc.told || strings.Contains(w.Body.String(), "hidden") {
				t.Errorf("%d are told, want %d: %.300s", 1+len(reply.Refusals), tc.told, w.Body.String())
			}
		})
	}
}

// Another manager is told those that it has not had.
func TestAnotherManagerIsToldOlderRefusals(t *testing.T) {
	store := explain.NewStore()
	for i := range 25 {
		store.PutRefusal(explain.Answer{Subject: decision.Subject{Namespace: "shop", Name: "web"}, Request: &explain.Request{UID: fmt.Sprint("r", i), User: "bob", Resource: "pods"}})
	}
	s := &Server{Store: store, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(allowAll)}
	h := s.server(nil).Handler
	for skip, want := range map[int]string{0: "r24", 20: "r4", 24: "r0"} {
		var reply explain.Reply
		w := answerTo(t, h, explain.ReplicaPath+"?"+explain.Question{User: "bob", Skip: skip}.Values().Encode())
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || reply.Answer.Request.UID != want || 1+len(reply.Refusals) != min(25-skip, refusalsTold) {
			t.Errorf("after %d: %d %.300s", skip, w.Code, w.Body.String())
		}
	}
	if w := answerTo(t, h, explain.ReplicaPath+"?user=bob&skip=25"); w.Code != http.StatusNotFound {
		t.Errorf("after all: %d %.300s", w.Code, w.Body.String())
	}
}
