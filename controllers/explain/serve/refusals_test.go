// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
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
			w := answerTo(t, s.newHTTPServer(nil).Handler, urlOf("user=bob&skip=1000"))
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
	h := s.newHTTPServer(nil).Handler
	for skip, want := range map[int]string{0: "r24", 20: "r4", 24: "r0"} {
		var reply explain.Reply
		w := answerTo(t, h, explain.ReplicaPath+"?"+explain.Question{User: "bob", Skip: skip}.QueryValues().Encode())
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || reply.Answer.Request.UID != want || 1+len(reply.Refusals) != min(25-skip, refusalsTold) {
			t.Errorf("after %d: %d %.300s", skip, w.Code, w.Body.String())
		}
	}
	if w := answerTo(t, h, explain.ReplicaPath+"?user=bob&skip=25"); w.Code != http.StatusNotFound {
		t.Errorf("after all: %d %.300s", w.Code, w.Body.String())
	}
}

// peerOf is another manager, which has a store; edit changes what it is asked.
func peerOf(t *testing.T, name string, store *explain.Store, edit func(*http.Request)) replicas.Replica {
	t.Helper()
	s := &Server{Store: store, Replica: name, Who: named(), May: authorizer.AuthorizerFunc(allowAll)}
	h := s.newHTTPServer(nil).Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Set("Authorization", "Bearer manager")
		if edit != nil {
			edit(req)
		}
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := replicas.NewClient(at, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return replicas.Replica{Name: name, Client: client, Most: 1 << 20}
}

// What another manager told does not hide later refusals, which come after those of this one that the caller may not know of.
func TestOlderRefusalsOfAnotherManagerHideNoLaterOnes(t *testing.T) {
	put := func(store *explain.Store, what string, at int64) {
		store.PutRefusal(explain.Answer{
			Decided: time.Unix(at, 0), Subject: decision.Subject{Namespace: "shop", Name: what}, Request: &explain.Request{UID: what, User: "bob", Resource: "pods"},
		})
	}
	for name, tc := range map[string]struct {
		edit        func(*http.Request) // of what the other one is asked
		hidden      int                 // of the other one too
		first, last string
		told        int
		warned      string
	}{
		"the other one's are older":          {first: "readable-late-2", told: 20, last: "readable-old-13"},
		"the other one is of an old release": {edit: func(req *http.Request) { q := req.URL.Query(); q.Del("skip"); req.URL.RawQuery = q.Encode() }, hidden: 30, first: "readable-late-2", told: 3, last: "readable-late-0", warned: "managers tell the same ones again"},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := explain.NewStore(), explain.NewStore()
			for i := range 3 {
				put(own, fmt.Sprint("readable-late-", i), int64(1000+i))
			}
			for i := range 45 {
				put(own, fmt.Sprint("hidden-", i), int64(2000+i))
			}
			for i := range 30 {
				put(other, fmt.Sprint("readable-old-", i), int64(10+i))
			}
			for i := range tc.hidden {
				put(other, fmt.Sprint("hidden-old-", i), int64(100+i))
			}
			s := &Server{Store: own, Replica: "first", Who: named(), May: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetAPIGroup() == explain.Group || strings.HasPrefix(a.GetName(), "readable") {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})}
			second := peerOf(t, "second", other, tc.edit)
			s.Peers = func(context.Context) ([]replicas.Replica, error) { return []replicas.Replica{second}, nil }
			w := answerTo(t, s.newHTTPServer(nil).Handler, urlOf("user=bob"))
			var reply explain.Reply
			if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %.300s: %v", w.Code, w.Body.String(), err)
			}
			all := refusalsOf(reply)
			if first, last := all[0].Subject.Name, all[len(all)-1].Subject.Name; first != tc.first || last != tc.last || len(all) != tc.told {
				t.Errorf("the answer has %d, from %s to %s, want %d, from %s to %s", len(all), first, last, tc.told, tc.first, tc.last)
			}
			if warnings := strings.Join(w.Header().Values("Warning"), "; "); (warnings != "") != (tc.warned != "") || !strings.Contains(warnings, tc.warned) {
				t.Errorf("warnings %q, want %q", warnings, tc.warned)
			}
		})
	}
}

// What is gathered from page to page has a bound in bytes, and a warning says that more is left out.
func TestRefusalsThatAreGatheredAreBounded(t *testing.T) {
	store := explain.NewStore()
	for i := range 20 {
		for _, what := range []string{"readable", "hidden"} {
			store.PutRefusal(explain.Answer{
				Decided: time.Unix(int64(i), 0), Subject: decision.Subject{Namespace: "shop", Name: fmt.Sprint(what, "-", i)}, Message: strings.Repeat("x", 50<<10),
				Request: &explain.Request{UID: fmt.Sprint(what, "-", i), User: "bob", Resource: "pods"},
			})
		}
	}
	s := &Server{Store: store, Replica: "first", May: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if strings.HasPrefix(a.GetName(), "readable") {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	h := http.Header{}
	found, _ := s.readableRefusals(t.Context(), h, &user.DefaultInfo{Name: "jane"}, explain.Question{User: "bob"})
	text, err := json.Marshal(found)
	if err != nil || len(text) > LargestSingle || len(found) < 4 || found[0].Subject.Name != "readable-19" {
		t.Errorf("%d refusals have %d bytes: %v", len(found), len(text), err)
	}
	if w := h.Values("Warning"); len(w) != 1 || !strings.Contains(w[0], "ask about one request") {
		t.Errorf("warnings %v", w)
	}
}
