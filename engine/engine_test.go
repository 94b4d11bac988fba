// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

type facts struct {
	Namespace string   `json:"namespace"`
	N         int      `json:"n"`
	Names     []string `json:"names"`
	Extra     string   `json:"extra,omitempty"`
}

type answer struct {
	Go    bool            `json:"go"`
	Total int             `json:"total"`
	Holds []decision.Hold `json:"holds"`
}

func (a *answer) SetDefaultRules(pkg string) {
	for i := range a.Holds {
		if a.Holds[i].Rule == "" {
			a.Holds[i].Rule = pkg
		}
	}
}

// point is a small one with all that the real ones have. It is patient: a busy
// machine may need longer for an answer than any sensible budget.
func point() decision.Point[facts, answer] {
	return decision.Point[facts, answer]{
		Name: "test/go", Budget: 20 * time.Second, MaxResult: 1000,
		Fallback: func(facts) answer { return answer{Total: -1} },
	}
}

// hasty is the point for where there is no answer in time, but without the slow
// policy there must be one.
func hasty() decision.Point[facts, answer] {
	p := point()
	p.Budget = 100 * time.Millisecond
	return p
}

const builtin = `package test

# METADATA
# title: Go unless a rule holds
# labels:
#   id: test/go
go := {"go": count(holds) == 0, "total": input.n + count(input.names), "holds": holds}

holds contains h if {
	some name
	some h in data.extend.test[name].hold
}

# METADATA
# labels:
#   id: test/too-many
holds contains {"reason": "TooMany", "message": "There are too many."} if input.n > 100
`

func subject() decision.Subject {
	return decision.Subject{Kind: "Test", Namespace: "shop", Name: "web"}
}

func newEngine(t testing.TB, source string, opts ...engine.Option) *engine.Engine {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"test/test.rego": {Data: []byte(source)}}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func platform(t testing.TB, name string, sources ...string) *bundle.Bundle {
	t.Helper()
	files := map[string]string{}
	for i, s := range sources {
		files[name+string(rune('a'+i))+".rego"] = s
	}
	b, err := bundle.FromFiles(name, files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func tenant(t testing.TB, namespace, source string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles("own", map[string]string{"p.rego": source}, bundle.AsTenant(namespace))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const freeze = `package extend.test.freeze

# METADATA
# labels:
#   id: freeze/friday
hold contains {"reason": "Freeze", "message": "It is Friday."} if input.extra == "friday"
`

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		builtin string
		bundles []string
		tenants map[string]string
		in      facts
		outcome decision.Outcome
		want    answer
		rules   string
		err     string
	}{
		"the built-in policy answers": {
			in: facts{N: 2, Names: []string{"a"}}, outcome: decision.Decided,
			want: answer{Go: true, Total: 3}, rules: "test/go",
		},
		"a nil list is an empty one": {
			in: facts{N: 2}, outcome: decision.Decided, want: answer{Go: true, Total: 2}, rules: "test/go",
		},
		"a hold without a rule is given the package's name, and the label is recorded": {
			in: facts{N: 101}, outcome: decision.Decided,
			want:  answer{Total: 101, Holds: []decision.Hold{{Rule: "test", Reason: "TooMany", Message: "There are too many."}}},
			rules: "test/go test/too-many",
		},
		"a bundle extends": {
			bundles: []string{freeze}, in: facts{N: 1, Extra: "friday"}, outcome: decision.Decided,
			want:  answer{Total: 1, Holds: []decision.Hold{{Rule: "test", Reason: "Freeze", Message: "It is Friday."}}},
			rules: "freeze/friday test test/go",
		},
		"an extension that says nothing changes nothing": {
			bundles: []string{freeze}, in: facts{N: 1}, outcome: decision.Decided,
			want: answer{Go: true, Total: 1}, rules: "test/go",
		},
		"an override replaces the whole decision": {
			bundles: []string{"package override.test\ngo := {\"go\": true, \"total\": 42, \"holds\": []}"},
			in:      facts{N: 1000}, outcome: decision.Decided, want: answer{Go: true, Total: 42}, rules: "override.test",
		},
		"a tenant holds in its own namespace": {
			tenants: map[string]string{"shop": freeze}, in: facts{N: 1, Extra: "friday"}, outcome: decision.Decided,
			want:  answer{Total: 1, Holds: []decision.Hold{{Rule: "test", Reason: "Freeze", Message: "It is Friday."}}},
			rules: "freeze/friday test test/go",
		},
		"a tenant does not hold in another one's": {
			tenants: map[string]string{"bank": freeze}, in: facts{N: 1, Extra: "friday"}, outcome: decision.Decided,
			want: answer{Go: true, Total: 1}, rules: "test/go",
		},
		"an undefined decision is the fallback": {
			builtin: "package test\ngo := {} if input.n > 5", in: facts{}, outcome: decision.Undefined,
			want: answer{Total: -1}, err: "no answer",
		},
		"a point that no rule defines is undefined": {
			builtin: "package test\nstop := 1", outcome: decision.Undefined,
			want: answer{Total: -1}, err: "no policy defines test/go",
		},
		"an answer of another type is an error that names the field": {
			builtin: "package test\ngo := {\"go\": true, \"total\": \"1\", \"holds\": []}", outcome: decision.Failed,
			want: answer{Total: -1}, err: "total is a string, want a whole number",
		},
		"a list that holds nonsense is an error that names the place": {
			builtin: "package test\ngo := {\"go\": true, \"total\": 1, \"holds\": [{\"reason\": \"A\", \"message\": 7}]}",
			outcome: decision.Failed, want: answer{Total: -1}, err: "holds[0].message is a number, want a string",
		},
		"an answer with a field too many is an error": {
			builtin: "package test\ngo := {\"go\": true, \"total\": 1, \"hold\": []}", outcome: decision.Failed,
			want: answer{Total: -1}, err: "hold is not a field of the answer, which has go, holds, total",
		},
		"an answer with a field too few is an error": {
			builtin: "package test\ngo := {\"go\": true, \"total\": 1}", outcome: decision.Failed,
			want: answer{Total: -1}, err: "holds is missing",
		},
		"rules that contradict each other are an error": {
			builtin: "package test\ngo := {\"go\": true}\ngo := {\"go\": false} if input.n == 0", outcome: decision.Failed,
			want: answer{Total: -1}, err: "eval_conflict_error",
		},
		"a built-in that is asked something silly is an error, not undefined": {
			builtin: "package test\ngo := {\"go\": to_number(input.names[0]) > 1, \"total\": 1, \"holds\": []}",
			in:      facts{Names: []string{"x"}}, outcome: decision.Failed, want: answer{Total: -1}, err: "eval_builtin_error",
		},
		"an answer that explodes when it is written out is refused": {
			builtin: "package test\na := [1,1,1,1,1,1,1,1]\nb := [a,a,a,a,a,a,a,a]\nc := [b,b,b,b,b,b,b,b]\nd := [c,c,c,c,c,c,c,c]\ngo := [d,d,d,d,d,d,d,d]",
			outcome: decision.Failed, want: answer{Total: -1}, err: "is an array, want an object",
		},
		"a list that is too long is refused": {
			builtin: "package test\ngo := {\"go\": true, \"total\": 1, \"holds\": [{\"reason\": \"A\", \"message\": sprintf(\"%d\", [i])} | some i in numbers.range(1, 2000)]}",
			outcome: decision.Failed, want: answer{Total: -1}, err: "larger than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := tc.builtin
			if source == "" {
				source = builtin
			}
			var records []decision.Record
			e := newEngine(t, source, engine.WithSink(sinkFunc(func(r decision.Record) { records = append(records, r) })))
			var set bundle.Set
			for i, s := range tc.bundles {
				set = append(set, platform(t, "b"+string(rune('0'+i)), s))
			}
			for ns, s := range tc.tenants {
				set = append(set, tenant(t, ns, s))
			}
			if err := e.ActivateBundles(context.Background(), set); err != nil {
				t.Fatal(err)
			}
			got, rec := engine.Decide(context.Background(), e, point(), subject(), tc.in)
			if rec.Outcome != tc.outcome || !strings.Contains(rec.Error, tc.err) || (tc.err == "") != (rec.Error == "") {
				t.Errorf("outcome %s, error %q; want %s, %q", rec.Outcome, rec.Error, tc.outcome, tc.err)
			}
			if got.Go != tc.want.Go || got.Total != tc.want.Total || len(got.Holds) != len(tc.want.Holds) {
				t.Errorf("answer %+v, want %+v", got, tc.want)
			}
			for i := range min(len(got.Holds), len(tc.want.Holds)) {
				if got.Holds[i].Rule != tc.want.Holds[i].Rule || got.Holds[i].Reason != tc.want.Holds[i].Reason {
					t.Errorf("hold %+v, want %+v", got.Holds[i], tc.want.Holds[i])
				}
			}
			if tc.rules != "" && sorted(rec.Rules) != tc.rules {
				t.Errorf("rules %v, want %s", rec.Rules, tc.rules)
			}
			if len(records) != 1 || records[0].ID != rec.ID || rec.Subject != subject() || rec.Revision == "" || len(rec.Bundles) == 0 {
				t.Errorf("records %+v, want the one of this decision", records)
			}
		})
	}
}

type sinkFunc func(decision.Record)

func (f sinkFunc) RecordDecision(r decision.Record) { f(r) }

// watcher collects what happens to an engine.
type watcher struct {
	mu        sync.Mutex
	rollbacks []engine.Rollback
	withheld  bundle.Set
	stuck     int
	throttled map[string]int // by namespace
	changed   chan struct{}
}

func newWatcher() *watcher {
	return &watcher{throttled: map[string]int{}, changed: make(chan struct{}, 100)}
}

func (w *watcher) RevisionActivated(string) {}

func (w *watcher) EvaluationStuck(_ decision.Name, delta int) {
	w.mu.Lock()
	w.stuck += delta
	w.mu.Unlock()
	w.changed <- struct{}{}
}

func (w *watcher) DecisionThrottled(namespace string, _ decision.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.throttled[namespace]++
}

func (w *watcher) BundlesWithheld(set bundle.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.withheld = set
}

func (w *watcher) RolledBack(r engine.Rollback) {
	w.mu.Lock()
	w.rollbacks = append(w.rollbacks, r)
	w.mu.Unlock()
	w.changed <- struct{}{}
}

func TestOneNamespaceDoesNotCompileForAnother(t *testing.T) {
	e := newEngine(t, builtin)
	shop, bank := tenant(t, "shop", freeze), tenant(t, "bank", freeze)
	if err := e.ActivateBundles(context.Background(), bundle.Set{shop, bank}); err != nil {
		t.Fatal(err)
	}
	before := e.ActiveSnapshot()
	other := tenant(t, "bank", strings.Replace(freeze, "friday", "monday", 1))
	if err := e.ActivateBundles(context.Background(), bundle.Set{shop, other}); err != nil {
		t.Fatal(err)
	}
	for ns, same := range map[string]bool{"shop": true, "bank": false, "third": true} {
		s := decision.Subject{Namespace: ns}
		if got := e.ActiveSnapshot().RevisionFor(s) == before.RevisionFor(s); got != same {
			t.Errorf("the revision in %s is the same: %v, want %v", ns, got, same)
		}
	}
}

func TestOnlyDecisionsThatAreWaitedForAreCounted(t *testing.T) {
	e, err := engine.New(fstest.MapFS{"p.rego": {Data: []byte(builtin)}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var meanwhile []int
	p := point()
	p.Check = func(facts, answer) error {
		meanwhile = append(meanwhile, e.DecisionsInFlight())
		return nil
	}
	engine.Decide(t.Context(), e, p, decision.Subject{}, facts{N: 1})
	engine.DecideOn(t.Context(), e, e.ActiveSnapshot(), p.EraseTypes(), decision.Subject{}, facts{N: 1})
	if len(meanwhile) != 2 || meanwhile[0] != 1 || meanwhile[1] != 0 || e.DecisionsInFlight() != 0 {
		t.Errorf("meanwhile there were %v, afterwards %d", meanwhile, e.DecisionsInFlight())
	}
}
