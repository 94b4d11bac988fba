// SPDX-License-Identifier: Apache-2.0

package rank_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/rank"
	"github.com/regatta-sh/regatta/test/heap"
)

// policy is the default order and a lead column for each user's package, like
// the built-in one; single pods are held by a label.
const policy = `package rollout

rank := {
	"keys": [[p.assigned, p.phase, p.ready, p.readySince, p.restarts, p.created] | some p in input.pods],
	"descending": [3, 4, 5],
	"lead": [[object.get(places, p.name, 0) | some places in columns] | some p in input.pods],
	"holds": [{"pod": p.name, "reason": "Frozen", "message": "It is frozen."} | some p in input.pods; p.labels.frozen == "yes"],
}

columns := [places | some pkg; places := data.extend.rollout[pkg].rank]
`

const goldLast = `package extend.rollout.gold
rank := {p.name: 1 | some p in input.pods; p.labels.tier == "gold"}
`

type pods struct {
	facts  []points.PodFacts
	hashes []uint64
	asked  int
}

func (p *pods) Len() int            { return len(p.facts) }
func (p *pods) PodUID(i int) string { return p.facts[i].Name }
func (p *pods) FactsHash(i int) uint64 {
	return p.hashes[i]
}

func (p *pods) PodFacts(i int) points.PodFacts {
	p.asked++
	return p.facts[i]
}

func (p *pods) change(seed maphash.Seed, i int, f func(*points.PodFacts)) {
	f(&p.facts[i])
	p.hashes[i] = rank.HashFacts(seed, &p.facts[i])
}

func somePods(seed maphash.Seed, n int) *pods {
	p := &pods{}
	for i := range n {
		p.facts = append(p.facts, points.PodFacts{
			Name: fmt.Sprintf("web-%05d", i), Node: fmt.Sprintf("node-%d", i%40), Labels: map[string]string{"app": "web"},
			Assigned: 1, Phase: 2, Ready: i % 2, ReadySince: int64(i * 7919 % 1000), Created: int64(i * 104729 % 1000),
		})
		p.hashes = append(p.hashes, rank.HashFacts(seed, &p.facts[i]))
	}
	return p
}

func newEngine(t testing.TB, source string, sinks ...engine.Sink) *engine.Engine {
	t.Helper()
	opts := []engine.Option{engine.WithPatience(20)} // the machine may be busy
	for _, s := range sinks {
		opts = append(opts, engine.WithSink(s))
	}
	e, err := engine.New(fstest.MapFS{"rollout/rank.rego": {Data: []byte(source)}}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func activate(t testing.TB, e *engine.Engine, source string) {
	t.Helper()
	b, err := bundle.FromFiles("user", map[string]string{"p.rego": source})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(context.Background(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
}

func workload() points.Workload {
	return points.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u1"}
}

// asked counts the pods that each evaluation was about.
type asked struct {
	batches []int
	after   func()
}

func (a *asked) RecordDecision(r decision.Record) {
	if a.after != nil {
		defer a.after()
	}
	a.batches = append(a.batches, len(r.Input.(points.RankInput).Pods))
}

func names(o *rank.Order, p *pods) (out []int) {
	for i := range p.facts {
		out = append(out, i)
	}
	o.SortPods(out)
	o.SortByLead(out)
	return out
}

func TestRankAsksOnlyAboutWhatChanged(t *testing.T) {
	seed := maphash.MakeSeed()
	log := &asked{}
	e := newEngine(t, policy, log)
	r := rank.New(e)
	p := somePods(seed, 100)
	w, s := workload(), points.Strategy{Type: "RollingUpdate"}
	step := func(name string, want ...int) *rank.Order {
		t.Helper()
		log.batches = nil
		o := r.RankPods(context.Background(), decision.Subject{Namespace: "shop"}, w, s, p)
		if !slices.Equal(log.batches, want) {
			t.Errorf("%s: asked about %v pods, want %v", name, log.batches, want)
		}
		// Whatever was remembered, the order is that of a ranker that never
		// remembers.
		fresh := rank.New(e).RankPods(context.Background(), decision.Subject{Namespace: "shop"}, w, s, p)
		if got, want := names(&o, p), names(&fresh, p); !slices.Equal(got, want) {
			t.Errorf("%s: the order is %v, want %v", name, got, want)
		}
		for i := range p.facts {
			if len(o.PodHolds(i)) != len(fresh.PodHolds(i)) {
				t.Errorf("%s: pod %d has holds %v, want %v", name, i, o.PodHolds(i), fresh.PodHolds(i))
			}
		}
		return &o
	}
	step("at first", 100)
	step("nothing changed")
	p.change(seed, 3, func(f *points.PodFacts) { f.Restarts = 5 })
	p.change(seed, 9, func(f *points.PodFacts) { f.Labels = map[string]string{"frozen": "yes"} })
	if o := step("two changed", 2); len(o.PodHolds(9)) != 1 || o.PodHolds(9)[0].Reason != "Frozen" {
		t.Errorf("the hold of pod 9 is %v", o.PodHolds(9))
	}
	if o := step("the hold is remembered"); len(o.PodHolds(9)) != 1 || len(o.Records) != 0 {
		t.Errorf("the hold of pod 9 is %v, the records %v", o.PodHolds(9), o.Records)
	}
	p.facts, p.hashes = p.facts[:90], p.hashes[:90]
	step("ten are gone")
	w.Annotations = map[string]string{"note": "changed"}
	step("the workload changed", 90)
	s.Weights = []int{1}
	step("the strategy changed", 90)
	activate(t, e, goldLast)
	step("a bundle became active", 90)
	step("nothing changed with a bundle")
	p.change(seed, 5, func(f *points.PodFacts) { f.Labels = map[string]string{"tier": "gold"} })
	o := step("one became gold", 1)
	if got := names(o, p); got[len(got)-1] != 5 {
		t.Errorf("gold is not last: %v", got)
	}
	r.ForgetWorkload(w.UID)
	step("the workload was forgotten", 90)
	p.facts, p.hashes = nil, nil
	step("no pods")
}

func TestPlacesThatCannotBeComparedAreAskedTogether(t *testing.T) {
	seed := maphash.MakeSeed()
	log := &asked{}
	e := newEngine(t, policy, log)
	// The column exists only in batches with gold, so that lead has another length.
	activate(t, e, "package extend.rollout.gold\nrank := {p.name: 1 | some p in input.pods; p.labels.tier == \"gold\"} if { some p in input.pods; p.labels.tier == \"gold\" }")
	r := rank.New(e)
	p := somePods(seed, 50)
	ask := func() rank.Order {
		log.batches = nil
		return r.RankPods(context.Background(), decision.Subject{}, workload(), points.Strategy{}, p)
	}
	ask()
	p.change(seed, 5, func(f *points.PodFacts) { f.Labels = map[string]string{"tier": "gold"} })
	o := ask()
	if !slices.Equal(log.batches, []int{1, 50}) {
		t.Errorf("asked about %v pods, want 1 and then all 50", log.batches)
	}
	if got := names(&o, p); got[len(got)-1] != 5 {
		t.Errorf("gold is not last: %v", got)
	}
}

func TestWithoutADecisionTheDefaultOrderIsUsedAndNotRemembered(t *testing.T) {
	seed := maphash.MakeSeed()
	log := &asked{}
	// It fails when a pod is broken.
	e := newEngine(t, policy+"\ncolumns := [] if { some p in input.pods; p.labels.broken == \"yes\"; to_number(\"x\") > 1 }", log)
	r := rank.New(e)
	p := somePods(seed, 20)
	ask := func() rank.Order {
		log.batches = nil
		return r.RankPods(context.Background(), decision.Subject{}, workload(), points.Strategy{}, p)
	}
	good := ask()
	p.change(seed, 5, func(f *points.PodFacts) { f.Labels = map[string]string{"broken": "yes"} })
	bad := ask()
	if bad.Outcome != decision.Failed || !slices.Equal(log.batches, []int{1}) || len(bad.Records) != 1 {
		t.Errorf("outcome %s after %v", bad.Outcome, log.batches)
	}
	if got, want := names(&bad, p), names(&good, p); !slices.Equal(got, want) {
		t.Errorf("the order is %v, want the default order %v", got, want)
	}
	// The places of the other pods are remembered all the same.
	if again := ask(); again.Outcome != decision.Failed || !slices.Equal(log.batches, []int{1}) {
		t.Errorf("outcome %s after %v", again.Outcome, log.batches)
	}
	p.change(seed, 5, func(f *points.PodFacts) { f.Labels = map[string]string{"tier": "gold"} })
	o := ask()
	if o.Outcome != decision.Decided || !slices.Equal(log.batches, []int{1}) {
		t.Errorf("outcome %s after %v", o.Outcome, log.batches)
	}
	if got, want := names(&o, p), names(&good, p); !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// Each pod of a workload without an answer is held where a rule of users takes part, those too whose places are remembered.
func TestWithoutADecisionOfUsersEachPodIsHeld(t *testing.T) {
	seed := maphash.MakeSeed()
	e := newEngine(t, policy+"\ncolumns := [] if { some p in input.pods; p.labels.broken == \"yes\"; to_number(\"x\") > 1 }")
	activate(t, e, goldLast)
	r := rank.New(e)
	p := somePods(seed, 20)
	ask := func(held int) {
		t.Helper()
		o := r.RankPods(context.Background(), decision.Subject{}, workload(), points.Strategy{}, p)
		for i := range p.facts {
			if len(o.PodHolds(i)) != held {
				t.Fatalf("pod %d has the holds %v, want %d (%s)", i, o.PodHolds(i), held, o.Outcome)
			}
		}
	}
	ask(0)
	p.change(seed, 5, func(f *points.PodFacts) { f.Labels = map[string]string{"broken": "yes"} })
	ask(1)
	p.change(seed, 5, func(f *points.PodFacts) { f.Labels = nil })
	ask(0)
}

// A large workload is ranked in batches. What those before a failure gave is remembered, so that a workload gets on however many
// of its pods are without an answer.
func TestLargeWorkloadsAreRankedInBatches(t *testing.T) {
	seed := maphash.MakeSeed()
	log := &asked{}
	e := newEngine(t, policy+"\ncolumns := [] if { some p in input.pods; p.labels.broken == \"yes\"; to_number(\"x\") > 1 }", log)
	r := rank.New(e)
	p := somePods(seed, 4500)
	ask := func(outcome decision.Outcome, batches ...int) rank.Order {
		t.Helper()
		log.batches = nil
		o := r.RankPods(context.Background(), decision.Subject{}, workload(), points.Strategy{}, p)
		if o.Outcome != outcome || !slices.Equal(log.batches, batches) || len(o.Records) != len(batches) {
			t.Fatalf("%s after %v with %d records, want %s after %v", o.Outcome, log.batches, len(o.Records), outcome, batches)
		}
		return o
	}
	activate(t, e, goldLast) // so that the order is not the default order
	p.change(seed, 100, func(f *points.PodFacts) { f.Labels = map[string]string{"tier": "gold"} })
	p.change(seed, 4100, func(f *points.PodFacts) { f.Labels = map[string]string{"broken": "yes"} })
	bad := ask(decision.Failed, 2000, 2000, 500)
	ask(decision.Failed, 500)
	p.change(seed, 4100, func(f *points.PodFacts) { f.Labels = nil })
	good := ask(decision.Decided, 500)
	ask(decision.Decided)
	if got := names(&good, p); got[len(got)-1] != 100 {
		t.Errorf("gold is not last, but %d", got[len(got)-1])
	}
	if got := names(&bad, p); got[len(got)-1] == 100 {
		t.Error("without an answer the order is not the default order")
	}
	p.change(seed, 100, func(f *points.PodFacts) { f.Labels = nil })
	ask(decision.Decided, 1)

	// A batch whose places cannot be compared with those of the batches before.
	activate(t, e, "package extend.rollout.gold\nrank := {p.name: 1 | some p in input.pods; p.labels.tier == \"gold\"} if { some p in input.pods; p.labels.tier == \"gold\" }")
	p.change(seed, 4200, func(f *points.PodFacts) { f.Labels = map[string]string{"tier": "gold"} })
	o := ask(decision.Decided, 2000, 2000, 500, 4500)
	if got := names(&o, p); got[len(got)-1] != 4200 {
		t.Errorf("gold is not last, but %d", got[len(got)-1])
	}

	// A revision that becomes active between two batches.
	log.after = func() { log.after = nil; activate(t, e, goldLast) }
	for i := range p.facts {
		p.change(seed, i, func(f *points.PodFacts) { f.Restarts++ })
	}
	o = ask(decision.Decided, 2000, 2000, 2000, 2000, 500)
	if got := names(&o, p); got[len(got)-1] != 4200 {
		t.Errorf("gold is not last, but %d", got[len(got)-1])
	}

	// Revisions that become active all the time.
	revision := 0
	log.after = func() {
		revision++
		activate(t, e, fmt.Sprintf("%s# %d\n", goldLast, revision))
	}
	for i := range p.facts {
		p.change(seed, i, func(f *points.PodFacts) { f.Restarts++ })
	}
	ask(decision.Decided, 2000, 2000, 2000, 2000, 2000, 2000, 4500)
}

// Of the workloads together no more is remembered than the bound, and the one that was used longest ago is forgotten first.
func TestMemoryIsBounded(t *testing.T) {
	seed := maphash.MakeSeed()
	log := &asked{}
	e := newEngine(t, policy, log)
	p := somePods(seed, 10)
	ask := func(r *rank.Ranker, n int) {
		w := workload()
		w.UID = fmt.Sprint(n)
		r.RankPods(context.Background(), decision.Subject{}, w, points.Strategy{}, p)
	}
	one := rank.New(e)
	ask(one, 0)
	most := one.CountBytes() * 5 / 2
	r := rank.New(e, rank.WithMaxBytes(most))
	for n := range 5 {
		ask(r, n)
	}
	if r.CountBytes() > most {
		t.Errorf("%d bytes are remembered, more than %d", r.CountBytes(), most)
	}
	log.batches = nil
	for _, n := range []int{4, 3, 0} {
		ask(r, n)
	}
	if !slices.Equal(log.batches, []int{10}) {
		t.Errorf("asked about %v, want the workload that was used longest ago", log.batches)
	}
	for n := range 5 {
		r.ForgetWorkload(fmt.Sprint(n))
	}
	if r.CountBytes() != 0 {
		t.Errorf("%d bytes are remembered of nothing", r.CountBytes())
	}
}

// longHolds holds each pod with a long message of its own, made of a part of a text that is longer.
const longHolds = `package rollout

rank := {"keys": [[0] | some _ in input.pods], "lead": [[0] | some _ in input.pods], "descending": [], "holds": [
	{"pod": p.name, "reason": "Frozen", "message": substring(concat("", array.concat([p.name], [text | some _ in numbers.range(1, 16)])), 0, 8000)} |
	some p in input.pods
]}

text := concat("", ["x" | some _ in numbers.range(1, 1000)])
`

// The messages of holds are written by users' rules: what is remembered of them is bounded too, and they hold all the same.
func TestMessagesOfHoldsAreBounded(t *testing.T) {
	const most = 2 << 20
	seed := maphash.MakeSeed()
	log := &asked{}
	e := newEngine(t, longHolds, log)
	r := rank.New(e, rank.WithMaxBytes(most))
	small, large := somePods(seed, 50), somePods(seed, 300)
	ask := func(n int, p *pods) {
		t.Helper()
		w := workload()
		w.UID = fmt.Sprint(n)
		o := r.RankPods(context.Background(), decision.Subject{}, w, points.Strategy{}, p)
		for i := range p.facts {
			if len(o.PodHolds(i)) != 1 {
				t.Fatalf("pod %d of workload %d has the holds %v (%s)", i, n, o.PodHolds(i), o.Outcome)
			}
		}
		if r.CountBytes() > most {
			t.Fatalf("%d bytes are remembered, more than %d", r.CountBytes(), most)
		}
	}
	before := heap.CountLiveBytes()
	for n := range 12 {
		ask(n, small)
	}
	log.batches = nil
	if grown := heap.CountLiveBytes() - before; grown > 2*most {
		t.Errorf("the heap has grown by %d KiB, with %d KiB counted", grown>>10, r.CountBytes()>>10)
	}
	ask(11, small)
	if len(log.batches) != 0 {
		t.Errorf("asked about %v, though there is room for it", log.batches)
	}
	// By itself over the bound: asked each time, and it leaves the others alone.
	ask(12, large)
	ask(12, large)
	ask(11, small)
	if !slices.Equal(log.batches, []int{300, 300}) {
		t.Errorf("asked about %v, want the large workload each time and nothing else", log.batches)
	}
}

// Places that pods had before are counted for as long as they are in memory.
func TestWhatPodsHadBeforeIsFreed(t *testing.T) {
	seed := maphash.MakeSeed()
	r := rank.New(newEngine(t, longHolds), rank.WithMaxBytes(4<<20))
	p := somePods(seed, 100)
	for round := range 20 {
		for i := 1; i < len(p.facts); i++ { // the first keeps the memory of its batch
			p.change(seed, i, func(f *points.PodFacts) { f.Restarts = round })
		}
		r.RankPods(context.Background(), decision.Subject{}, workload(), points.Strategy{}, p)
		if most := 3 << 20; r.CountBytes() > most || r.CountBytes() < 100*8000 {
			t.Fatalf("round %d: %d bytes are counted of 100 pods with 8,000 bytes each", round, r.CountBytes())
		}
	}
}

// The annotations of workloads are kept to see whether they change.
func TestFactsOfWorkloadsAreBounded(t *testing.T) {
	const most = 1 << 20
	seed := maphash.MakeSeed()
	r := rank.New(newEngine(t, policy), rank.WithMaxBytes(most))
	p := somePods(seed, 1)
	for n := range 20 {
		w := workload()
		w.UID, w.Annotations = fmt.Sprint(n), map[string]string{"note": strings.Repeat("x", 200<<10)}
		r.RankPods(context.Background(), decision.Subject{}, w, points.Strategy{}, p)
		if got := r.CountBytes(); got > most || got < 200<<10 {
			t.Fatalf("%d bytes are counted of %d workloads", got, n+1)
		}
	}
}

func TestEveryFactIsInTheHash(t *testing.T) {
	seed := maphash.MakeSeed()
	typ := reflect.TypeFor[points.PodFacts]()
	before := rank.HashFacts(seed, &points.PodFacts{})
	for i := range typ.NumField() {
		f := points.PodFacts{}
		v := reflect.ValueOf(&f).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"": ""}))
		default:
			t.Fatalf("%s is a %s, which this test does not know", typ.Field(i).Name, v.Kind())
		}
		if rank.HashFacts(seed, &f) == before {
			t.Errorf("%s is not in the hash", typ.Field(i).Name)
		}
	}
	on := &points.PodFacts{OnNode: &points.NodeFacts{}}
	for name, n := range map[string]points.NodeFacts{
		"labels": {Labels: map[string]string{"": ""}}, "unschedulable": {Unschedulable: true}, "created": {Created: 7}, "conditions": {Conditions: []string{"Ready"}},
	} {
		if rank.HashFacts(seed, &points.PodFacts{OnNode: &n}) == rank.HashFacts(seed, on) {
			t.Errorf("the %s of a node are not in the hash", name)
		}
	}
	pulls := func(image, phase string) *points.PodFacts {
		return &points.PodFacts{Pulls: []points.ImagePull{{Image: image, Phase: phase}}}
	}
	if before := rank.HashFacts(seed, pulls("web:2", "Pulling")); before == rank.HashFacts(seed, pulls("web:3", "Pulling")) || before == rank.HashFacts(seed, pulls("web:2", "Failed")) {
		t.Error("the image or the phase of a pull is not in the hash")
	}
	a := points.PodFacts{Labels: map[string]string{"a": "1", "b": "2", "c": "3"}, Matches: []int{1, 2}}
	b := points.PodFacts{Labels: map[string]string{"c": "3", "b": "2", "a": "1"}, Matches: []int{1, 2}}
	if rank.HashFacts(seed, &a) != rank.HashFacts(seed, &b) {
		t.Error("equal facts have different hashes")
	}
	b.Matches = []int{2, 1}
	if rank.HashFacts(seed, &a) == rank.HashFacts(seed, &b) {
		t.Error("the order of matches is not in the hash")
	}
	if n := testing.AllocsPerRun(100, func() { rank.HashFacts(seed, &a) }); n != 0 {
		t.Errorf("hashing allocates %v times", n)
	}
}

func TestNothingIsAllocatedForAnUnchangedPod(t *testing.T) {
	seed := maphash.MakeSeed()
	e := newEngine(t, policy)
	allocs := func(n int) float64 {
		r := rank.New(e)
		p := somePods(seed, n)
		waiting := make([]int, n)
		return testing.AllocsPerRun(20, func() {
			o := r.RankPods(context.Background(), decision.Subject{}, workload(), points.Strategy{}, p)
			for i := range waiting {
				waiting[i] = i
			}
			o.SortPods(waiting)
			o.SortByLead(waiting)
		})
	}
	if a, b := allocs(1000), allocs(2000); a != b {
		t.Errorf("1,000 unchanged pods allocate %v times, 2,000 allocate %v times", a, b)
	}
}

// Pods of one name in several namespaces have each the holds that name them.
func TestHoldsOfPodsOfOneName(t *testing.T) {
	const policy = `package rollout

rank := {"keys": [[0] | some _ in input.pods], "lead": [[0] | some _ in input.pods], "descending": [], "holds": [
	{"reason": "All", "message": "m", "pod": "web-0"},
	{"reason": "One", "message": "m", "pod": "web-0", "namespace": "b"},
	{"reason": "Other", "message": "m", "pod": "web-1", "namespace": "b"},
]}
`
	seed := maphash.MakeSeed()
	p := &pods{}
	for _, f := range []points.PodFacts{
		{Namespace: "a", Name: "web-0", NamespacedName: "a/web-0"}, {Namespace: "b", Name: "web-0", NamespacedName: "b/web-0"},
		{Namespace: "a", Name: "web-1", NamespacedName: "a/web-1"}, {Namespace: "b", Name: "web-1", NamespacedName: "b/web-1"},
	} {
		p.facts, p.hashes = append(p.facts, f), append(p.hashes, rank.HashFacts(seed, &f))
	}
	w := points.Workload{Kind: "SidecarSet", Name: "logs", UID: "u1"}
	r := rank.New(newEngine(t, policy))
	for _, when := range []string{"at first", "remembered"} {
		o := r.RankPods(t.Context(), decision.Subject{}, w, points.Strategy{}, uniquePods{p})
		var got []string
		for i := range p.facts {
			reasons := ""
			for _, h := range o.PodHolds(i) {
				reasons += " " + h.Reason
			}
			got = append(got, p.facts[i].NamespacedName+":"+reasons)
		}
		if want := []string{"a/web-0: All", "b/web-0: One All", "a/web-1:", "b/web-1: Other"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
}

// uniquePods have UIDs of their own, as pods of one name in two namespaces do.
type uniquePods struct{ *pods }

func (p uniquePods) PodUID(i int) string { return p.facts[i].NamespacedName }

// A hold is of all that it does not limit itself to: one that names no pod holds each, also those whose places are remembered.
func TestHoldsThatNameNoPod(t *testing.T) {
	const source = `package rollout
rank := {
	"keys": [[0] | some p in input.pods], "descending": [], "lead": [[0] | some p in input.pods],
	"holds": [
		{"namespace": "", "reason": "All", "message": "All."},
		{"namespace": "b", "reason": "B", "message": "All of b."},
		{"pod": "web-1", "reason": "Web1", "message": "Each web-1."},
	],
}
`
	p := uniquePods{&pods{}}
	p.facts = []points.PodFacts{
		{Namespace: "a", Name: "web-0", NamespacedName: "a/web-0"}, {Namespace: "b", Name: "web-0", NamespacedName: "b/web-0"}, {Namespace: "b", Name: "web-1", NamespacedName: "b/web-1"},
	}
	p.hashes = []uint64{1, 2, 3}
	r := rank.New(newEngine(t, source))
	for range 2 {
		o := r.RankPods(t.Context(), decision.Subject{}, points.Workload{Kind: "SidecarSet", Name: "logs", UID: "u"}, points.Strategy{Type: "RollingUpdate"}, p)
		for i, want := range []string{"All", "B All", "Web1 B All"} {
			var got []string
			for _, h := range o.PodHolds(i) {
				got = append(got, h.Reason)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s has the holds %v, want %s", p.facts[i].NamespacedName, got, want)
			}
		}
	}
}
