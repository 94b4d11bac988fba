// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

func made(origin string, second int64, id uint64) decision.Record {
	return decision.Record{Origin: origin, ID: id, Time: time.Unix(second, 0), Point: rollout.PlanPoint().Name, Outcome: decision.Decided, Output: rollout.PlanOutput{}}
}

func TestDecisionsOfAllReplicasAreMerged(t *testing.T) {
	first, second := newManager(t, 0, 0), newManager(t, 7, 0)
	first.records = []decision.Record{made("a", 1, 1), made("a", 3, 2), made("a", 3, 10)}
	second.records = []decision.Record{made("b", 2, 1), made("b", 3, 2)}
	a, err := New(newCluster(t, nil).config(), Flags{Insecure: true, Endpoints: []string{
		first.URL, second.URL, newManager(t, 0, http.StatusInternalServerError).URL, strings.Replace(first.URL, "127.0.0.1", "localhost", 1),
	}})
	if err != nil {
		t.Fatal(err)
	}
	records, warnings, err := a.FetchDecisions(t.Context(), Decisions{Since: time.Hour, Point: "rollout/plan", Kind: "CloneSet", Namespace: "shop", Name: "web", Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprint(r.Origin, r.ID))
	}
	if s := strings.Join(got, " "); s != "a1 b1 a2 a10 b2" {
		t.Errorf("got %s", s)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0].Error(), "remembers 7 older decisions") {
		t.Errorf("warnings %v", warnings)
	}
	if q := first.query.Load(); q != explain.APIPath+"/decisions?kind=CloneSet&limit=5&name=web&namespace=shop&point=rollout%2Fplan&since=1h0m0s" {
		t.Errorf("asked %v", q)
	}
}

func TestDecisionsThatNobodySends(t *testing.T) {
	for name, tc := range map[string]struct {
		code int
		want string
	}{
		"for want of a permission": {http.StatusForbidden, "kubectl create clusterrolebinding decisions-readers --clusterrole=kruise-decisions-reader"},
		"for want of credentials":  {http.StatusUnauthorized, "log in again"},
		"by an older manager":      {http.StatusTeapot, "does not serve " + explain.APIPath + " yet"},
		"by something without any": {http.StatusNotFound, "answers nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := New(newCluster(t, nil).config(), Flags{Insecure: true, Endpoints: []string{newManager(t, 0, tc.code).URL}})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := a.FetchDecisions(t.Context(), Decisions{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
