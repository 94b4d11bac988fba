// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

// recorded is a server with ten decisions, a minute apart, the last one now.
func recorded(t *testing.T, size int) (*httptest.Server, *string) {
	t.Helper()
	now := time.Unix(1_000_000, 0)
	buffer := record.NewBuffer()
	for i := range 10 {
		point, kind := rollout.PlanPoint().Name, "CloneSet"
		in := any(rollout.PlanInput{Workload: rollout.Workload{Annotations: map[string]string{"password": "hunter2", "x": strings.Repeat("x", size)}}})
		if i%2 == 1 {
			point, kind, in = protection.BudgetPoint().Name, "Pod", protection.BudgetInput{}
		}
		buffer.RecordDecision(decision.Record{
			ID: uint64(i + 1), Time: now.Add(time.Duration(i-9) * time.Minute), Point: point, Outcome: decision.Decided, Input: in,
			Subject: decision.Subject{Kind: kind, Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("n", i)},
		})
	}
	m, err := mask.New()
	if err != nil {
		t.Fatal(err)
	}
	var asked string
	s := &Server{
		Replica: "me", Records: buffer, Lines: record.NewEncoder(record.WithOrigin("me"), record.WithMask(m)), Now: func() time.Time { return now },
		Who: named(),
		May: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			asked = fmt.Sprintf("%s %s.%s %v", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), a.IsResourceRequest())
			if a.GetUser().GetName() == "jane" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	}
	server := httptest.NewServer(s.newHTTPServer(nil).Handler)
	t.Cleanup(server.Close)
	return server, &asked
}

func fetch(t *testing.T, server *httptest.Server, query, token string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+explain.APIPath+"/decisions?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// omitted is how many records a warning says were not sent.
func omitted(res *http.Response) string {
	_, text, found := strings.Cut(res.Header.Get("Warning"), "me remembers ")
	if !found {
		return "0"
	}
	n, _, _ := strings.Cut(text, " older decisions")
	return n
}

func TestRecordsAreServed(t *testing.T) {
	server, asked := recorded(t, 0)
	for name, tc := range map[string]struct{ query, ids, omitted string }{
		"all, the oldest first":           {"", "1 2 3 4 5 6 7 8 9 10", "0"},
		"those since a while":             {"since=2m", "8 9 10", "0"},
		"those of a point":                {"point=protection/budget", "2 4 6 8 10", "0"},
		"those of a kind in a namespace":  {"kind=CloneSet&namespace=ns0", "1 7", "0"},
		"those of a name":                 {"name=n4", "5", "0"},
		"the latest, when there are more": {"limit=3", "8 9 10", "7"},
		"the latest of those that are so": {"limit=1&point=rollout/plan", "9", "4"},
		"nothing where nothing is so":     {"name=x", "", "0"},
		"as many as there are, no more":   {"limit=10", "1 2 3 4 5 6 7 8 9 10", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := fetch(t, server, tc.query, "jane")
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/x-ndjson" || omitted(res) != tc.omitted || !res.Uncompressed {
				t.Errorf("%d %v, %s", res.StatusCode, res.Header, body)
			}
			if *asked != "list decisions.decisions.kruise.io true" {
				t.Errorf("asked for %s", *asked)
			}
			records, err := record.Read(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, r := range records {
				ids = append(ids, fmt.Sprint(r.ID))
				if r.Origin != "me" {
					t.Errorf("a record is of %q", r.Origin)
				}
				if in, ok := r.Input.(rollout.PlanInput); ok && in.Workload.Annotations["password"] != mask.Text {
					t.Errorf("a secret comes out: %+v", in)
				}
			}
			if got := strings.Join(ids, " "); got != tc.ids {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestRecordsAreBoundedByBytes(t *testing.T) {
	server, _ := recorded(t, 5<<20)
	res, body := fetch(t, server, "", "jane")
	if len(body) > LargestAnswer || len(body) < LargestAnswer/2 || omitted(res) != "7" {
		t.Errorf("%d bytes, %s omitted", len(body), omitted(res))
	}
}

func TestRecordsAreRefused(t *testing.T) {
	server, _ := recorded(t, 0)
	for name, tc := range map[string]struct {
		query, token string
		code         int
		want         string
	}{
		"to an anonymous caller":   {"", "", 401, "does not know the caller"},
		"to who may not":           {"", "eve", 403, "eve may not list decisions.decisions.kruise.io"},
		"no time":                  {"since=yesterday", "jane", 400, `parameter since is \"yesterday\"`},
		"a time to come":           {"since=-1h", "jane", 400, "parameter since"},
		"too many":                 {"limit=10001", "jane", 400, "parameter limit is \\\"10001\\\", want 1 to 10000"},
		"none":                     {"limit=0", "jane", 400, "parameter limit"},
		"a point that there isn't": {"point=rollout/x", "jane", 400, "parameter point"},
		"a parameter of no name":   {"sinse=1h", "jane", 400, "parameter sinse is not known"},
		"a parameter twice":        {"kind=a&kind=b", "jane", 400, "parameter kind is given 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			if res, body := fetch(t, server, tc.query, tc.token); res.StatusCode != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%d %s", res.StatusCode, body)
			}
		})
	}
}
