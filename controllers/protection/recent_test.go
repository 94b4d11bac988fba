package protection

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

func asks(operation, user, namespace, uid string) *Asked {
	return &Asked{
		Request: decision.Request{Operation: operation, User: decision.User{Name: user}},
		Object:  decision.Object{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: namespace, UID: uid},
	}
}

func TestRecent(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRecent(func() time.Time { return now })
	check := func(what string, a *Asked, deletes, byUser int) {
		t.Helper()
		if got := r.Before(a); got != (decision.Recent{Seconds: 60, Deletes: deletes, UserDeletes: byUser}) {
			t.Errorf("%s: %+v, want %d and %d", what, got, deletes, byUser)
		}
	}
	ask := asks("DELETE", "ann", "shop", "new")
	check("at first", ask, 0, 0)
	r.Went(asks("DELETE", "ann", "shop", "a"))
	r.SawPod("shop", "a")
	r.Went(asks("EVICT", "bob", "shop", "b"))
	r.SawPod("shop", "c")
	r.Went(asks("UPDATE", "ann", "shop", "d"))
	r.Went(asks("DELETE", "ann", "bank", "e"))
	r.SawPod("shop", "")
	dry := asks("DELETE", "ann", "shop", "f")
	dry.Request.DryRun = true
	r.Went(dry)
	service := asks("DELETE", "ann", "shop", "g")
	service.Object.Resource = "services"
	r.Went(service)
	check("each pod once, changes and dry runs not, other kinds and namespaces not", ask, 3, 1)
	check("not the one that is asked about once more", asks("DELETE", "ann", "shop", "a"), 2, 0)
	now = now.Add(Window)
	r.SawPod("shop", "h")
	check("for a minute", ask, 4, 1)
	now = now.Add(time.Nanosecond)
	check("and no longer", ask, 1, 0)
	now = now.Add(2 * Window)
	r.SawPod("elsewhere", "i")
	if len(r.went) != 1 {
		t.Errorf("%d namespaces are remembered", len(r.went))
	}
}

func TestRecentIsBounded(t *testing.T) {
	r := NewRecent(time.Now)
	for i := range most + 10 {
		r.Went(asks("DELETE", "ann", "shop", fmt.Sprint(i)))
	}
	if got := r.Before(asks("DELETE", "ann", "shop", "new")); got.Deletes != most {
		t.Errorf("%+v", got)
	}
	for _, l := range r.went {
		if len(l.known) != most || l.known["0"] || !l.known[fmt.Sprint(most)] {
			t.Errorf("%d are known", len(l.known))
		}
	}
}

func TestRecentIsForMany(t *testing.T) {
	r := NewRecent(time.Now)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				a := asks("DELETE", "ann", fmt.Sprint(j%3), fmt.Sprint(i, j))
				r.Before(a)
				r.Went(a)
				r.SawPod(a.Object.Namespace, a.Object.UID)
			}
		})
	}
	all.Wait()
	total := 0
	for i := range 3 {
		total += r.Before(asks("DELETE", "ann", fmt.Sprint(i), "")).Deletes
	}
	if total != 400 {
		t.Errorf("%d went", total)
	}
}
