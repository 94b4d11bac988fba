// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/nearest"
)

func refusal(uid, user, resource, namespace, name string) Answer {
	return Answer{
		Subject: decision.Subject{Namespace: namespace, Name: name}, Message: uid,
		Request: &Request{UID: uid, User: user, Resource: resource, Group: map[string]string{"deployments": "apps"}[resource]},
	}
}

func TestRefusals(t *testing.T) {
	s := NewStore()
	for _, a := range []Answer{
		refusal("1", "ann", "pods", "shop", "web-0"), refusal("2", "bob", "pods", "shop", "web-0"), refusal("3", "ann", "deployments", "shop", "web"),
		refusal("4", "ann", "namespaces", "", "shop"), refusal("5", "bob", "pods", "bank", "web-0"),
	} {
		s.PutRefusal(a)
	}
	for _, tc := range []struct {
		name  string
		q     RefusalFilter
		limit int
		want  string
	}{
		{"all, the latest first", RefusalFilter{}, 0, "[5 4 3 2 1]"},
		{"by request", RefusalFilter{UID: "3"}, 0, "[3]"},
		{"by user", RefusalFilter{User: "ann"}, 0, "[4 3 1]"},
		{"by object", RefusalFilter{Resource: "pods", Namespace: "shop", Name: "web-0"}, 0, "[2 1]"},
		{"by object of a group", RefusalFilter{Resource: "deployments.apps", Namespace: "shop", Name: "web"}, 0, "[3]"},
		{"not by the resource of another group", RefusalFilter{Resource: "deployments"}, 0, "[]"},
		{"only so many", RefusalFilter{User: "ann"}, 2, "[4 3]"},
		{"none that is not there", RefusalFilter{UID: "9"}, 0, "[]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := []string{}
			for _, a := range s.FindRefusals(tc.q, tc.limit) {
				out = append(out, a.Message)
			}
			if got := fmt.Sprint(out); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	for i := range kept + 3 {
		s.PutRefusal(refusal(fmt.Sprint("n", i), "ann", "pods", "shop", "x"))
	}
	all := s.FindRefusals(RefusalFilter{}, 0)
	if len(all) != kept || all[0].Message != fmt.Sprint("n", kept+2) || all[kept-1].Message != "n3" {
		t.Errorf("%d are kept, from %s to %s", len(all), all[0].Message, all[len(all)-1].Message)
	}
}

func TestRefusalsTakeNoMoreThanTheirBound(t *testing.T) {
	near := func(context.Context) *nearest.Result { return nil }
	tests := []struct {
		name       string
		question   int
		message    int
		kept, near bool
	}{
		{"a small question is kept with its answer", 1 << 10, 100, true, true},
		{"of a large question the answer is kept", 2_500_000, 100, true, false},
		{"a large answer is not kept", 1 << 10, 1 << 20, false, false},
		{"questions that are just small enough are forgotten in time", mostQuestion, 100, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := NewStore()
			for i := range kept + 3 {
				a := refusal(fmt.Sprint(i), "ann", "pods", "shop", "web-0")
				a.Message, a.Near, a.Basis, a.NearBytes = strings.Repeat("m", test.message), near, &whatif.Basis{}, test.question
				if test.message > 1<<16 && i > 20 {
					break
				}
				s.PutRefusal(a)
			}
			sum := 0
			for _, size := range s.refusals.sizes {
				sum += size
			}
			all := s.FindRefusals(RefusalFilter{}, 0)
			if sum != s.refusals.bytes || sum > RefusalBytes || len(all) != len(s.refusals.sizes) {
				t.Fatalf("%d refusals take %d bytes, counted are %d", len(all), sum, s.refusals.bytes)
			}
			if (len(all) > 0) != test.kept || test.kept && (all[0].Request.UID != fmt.Sprint(kept+2) || (all[0].Near != nil) != test.near || (all[0].Basis != nil) != test.near) {
				t.Errorf("%d are kept", len(all))
			}
		})
	}
}
