// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine/compare"
)

// compared asks in a namespace until so many more decisions are compared.
func compared(t *testing.T, l *library, key Key, namespace string, more uint64) compare.Tally {
	t.Helper()
	before, _ := l.ShadowTally(key)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		reasonsIn(l, namespace)
		if now, ok := l.ShadowTally(key); !ok {
			t.Fatalf("%s is not in shadow", key)
		} else if now.Compared >= before.Compared+more {
			return now
		}
	}
	t.Fatalf("nothing of %s is compared in %s", key, namespace)
	return compare.Tally{}
}

// groups are the kinds of differences, without how often.
func groups(t compare.Tally) string {
	var out []string
	for _, g := range t.Groups {
		out = append(out, fmt.Sprintf("%s %s -> %s", g.Kind, g.Then, g.Now))
	}
	return strings.Join(out, "; ")
}

func TestCountsOfAShadowGoOnWhileOtherBundlesChange(t *testing.T) {
	l := testLibrary(t)
	key := platform("freeze")
	s := Stages{Enforced: made(t, key, hold("a", "One", "true")), Shadow: made(t, key, hold("a", "Two", "true"))}
	if err := l.PutStages(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	first := compared(t, l, key, "shop", 3)
	if !strings.HasPrefix(groups(first), "changed Hold") || len(first.Groups) != 1 {
		t.Fatalf("the differences are %s", groups(first))
	}
	last := first
	for _, other := range []struct {
		name   string
		change func()
	}{
		{"a tenant's bundle comes", func() { put(t, l, tenant("shop", "mine"), hold("mine", "Mine", "true")) }},
		{"it changes", func() { put(t, l, tenant("shop", "mine"), hold("mine", "Other", "true")) }},
		{"one comes elsewhere", func() { put(t, l, tenant("bank", "own"), hold("own", "Own", "true")) }},
		{"the platform enforces another one", func() { put(t, l, platform("more"), hold("more", "More", "true")) }},
		{"that changes", func() { put(t, l, platform("more"), hold("more", "Most", "true")) }},
		{"it is taken out", func() {
			if err := l.RemoveBundle(t.Context(), platform("more")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a tenant's is in shadow too", func() {
			if err := l.PutStages(t.Context(), tenant("shop", "mine"), Stages{Shadow: made(t, tenant("shop", "mine"), hold("mine", "Mine", "true"))}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		other.change()
		for _, ns := range []string{"shop", "bank"} {
			now := compared(t, l, key, ns, 2)
			if !now.Since.Equal(first.Since) || now.Compared < last.Compared {
				t.Errorf("%s: it counts %d since %s, after %d since %s", other.name, now.Compared, now.Since, last.Compared, first.Since)
			}
			// Whatever else decides does so on both sides.
			if groups(now) != groups(first) || now.Same != 0 {
				t.Errorf("%s, in %s: the differences are %s, and %d are none", other.name, ns, groups(now), now.Same)
			}
			last = now
		}
	}
	s.Enforced = made(t, key, hold("a", "Three", "true"))
	if err := l.PutStages(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	fresh := compared(t, l, key, "shop", 1)
	if !fresh.Since.After(first.Since) || strings.Contains(groups(fresh), "One") {
		t.Errorf("in place of another one it goes on: %+v", fresh)
	}
	s.Shadow = made(t, key, hold("a", "Four", "true"))
	if err := l.PutStages(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	if again := compared(t, l, key, "shop", 1); !again.Since.After(fresh.Since) || strings.Contains(groups(again), "Two") {
		t.Errorf("another one in shadow goes on with its counts: %+v", again)
	}
}

func TestAShadowIsComparedWithWhatDecidesAfterARollback(t *testing.T) {
	w := hosttest.NewWatcher()
	l := testLibrary(t, w.EngineOptions()...)
	key := tenant("bank", "own")
	if err := l.PutStages(t.Context(), key, Stages{Shadow: made(t, key, hold("a", "One", "true"))}); err != nil {
		t.Fatal(err)
	}
	first := compared(t, l, key, "bank", 1)
	bad := Stages{Enforced: made(t, platform("slow"), slow)}
	if err := l.PutStages(t.Context(), platform("slow"), bad); err != nil {
		t.Fatal(err)
	}
	w.TriggerRollback(t, l.engine)
	if err := l.PutStages(t.Context(), platform("slow"), bad); err == nil {
		t.Fatal("it came back")
	}
	if now := compared(t, l, key, "bank", 2); !now.Since.Equal(first.Since) {
		t.Errorf("it began anew: %+v", now)
	}
}

func TestAShadowThatAnotherBundleKeepsOutIsNotCompared(t *testing.T) {
	l := testLibrary(t)
	for _, key := range []Key{tenant("shop", "mine"), tenant("bank", "own")} {
		if err := l.PutStages(t.Context(), key, Stages{Shadow: made(t, key, hold("mine", "Mine", "true"))}); err != nil {
			t.Fatal(err)
		}
	}
	both := Stages{Enforced: made(t, tenant("dev", "both"), hold("mine", "Now", "true")), Shadow: made(t, tenant("dev", "both"), hold("next", "Next", "true"))}
	if err := l.PutStages(t.Context(), tenant("dev", "both"), both); err != nil {
		t.Fatal(err)
	}
	compared(t, l, tenant("shop", "mine"), "shop", 1)
	compared(t, l, tenant("dev", "both"), "dev", 1)
	put(t, l, platform("mine"), hold("mine", "Platform", "true")) // a tenant gives way
	for _, key := range []Key{tenant("shop", "mine"), tenant("bank", "own"), tenant("dev", "both")} {
		if tally, ok := l.ShadowTally(key); ok {
			t.Errorf("%s is compared still: %+v", key, tally)
		}
	}
	if err := l.PutStages(t.Context(), tenant("shop", "mine"), Stages{Shadow: made(t, tenant("shop", "mine"), hold("mine", "Mine", "true"))}); err == nil {
		t.Error("no message says that it cannot be compared")
	}
}

// TestShadowsWhileBundlesChange is for the race detector: nothing that others
// change is ever counted as a difference of the shadow.
func TestShadowsWhileBundlesChange(t *testing.T) {
	l := testLibrary(t)
	key := platform("freeze")
	if err := l.PutStages(t.Context(), key, Stages{Shadow: made(t, key, hold("a", "Two", "true"))}); err != nil {
		t.Fatal(err)
	}
	compared(t, l, key, "shop", 1)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					reasonsIn(l, "shop")
					l.ShadowTally(key)
				}
			}
		})
	}
	for i := range 12 {
		put(t, l, tenant("shop", "mine"), hold("mine", fmt.Sprintf("Mine%d", i), "true"))
	}
	close(stop)
	asking.Wait()
	tally := compared(t, l, key, "shop", 1)
	if tally.Same+tally.Looser+tally.Errors != 0 {
		t.Errorf("the tally is %+v", tally)
	}
	for _, g := range tally.Groups {
		if strings.Contains(g.Then+g.Now, "Mine") {
			t.Errorf("what others changed is a difference: %+v", g)
		}
	}
}
