package record_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

const builtin = `package rollout

# METADATA
# title: How far
# labels:
#   id: rollout.plan
plan := {"limit": input.update, "maxUnavailable": 1, "holds": [h | some h in holds], "scatter": []}

holds contains h if {
	some name
	some h in data.extend.rollout[name].hold
}

# METADATA
# title: Paused
# description: The strategy is paused.
# labels:
#   id: rollout.paused
holds contains {"rule": "rollout.paused", "reason": "Paused", "message": "It is paused."} if input.strategy.paused
`

const friday = `package extend.rollout.freeze

# METADATA
# title: No Fridays
# labels:
#   id: freeze.friday
hold contains {
	"rule": "freeze.friday", "reason": "Friday", "message": sprintf("Nothing is moved on Fridays (%d).", [input.now]),
	"until": "2026-01-05T00:00:00Z",
} if {
	input.workload.labels.freeze == "friday"
	moves
}

moves if input.groups.zone[_].total > 0
`

func in(update int) decision.PlanInput {
	return decision.PlanInput{
		Now: 5, Update: update, Workload: decision.Workload{Name: "web", Labels: map[string]string{"freeze": "friday"}},
		Groups: map[string]map[string]decision.Group{"zone": {"a": {Total: 1}}},
	}
}

func web() decision.Subject {
	return decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "1"}
}

func newEngine(t *testing.T, sinks ...engine.Sink) *engine.Engine {
	t.Helper()
	opts := []engine.Option{engine.WithClock(func() time.Time { return time.Unix(0, 0).UTC() })}
	for _, s := range sinks {
		opts = append(opts, engine.WithSink(s))
	}
	return newEngineWith(t, append(opts, engine.WithPatience(20))...) // the machine may be busy
}

func newEngineWith(t *testing.T, opts ...engine.Option) *engine.Engine {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"rollout/plan.rego": {Data: []byte(builtin)}}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func with(t *testing.T, source string) bundle.Set {
	t.Helper()
	b, err := bundle.FromFiles("user", map[string]string{"p.rego": source})
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Set{b}
}

func rec(id uint64, name, reason string) decision.Record {
	r := decision.Record{ID: id, Point: "rollout/plan", Outcome: decision.Decided, Subject: decision.Subject{Kind: "CloneSet", Name: name}}
	out := decision.PlanOutput{}
	if reason != "" {
		out.Holds = []decision.Hold{{Rule: "r", Reason: reason, Message: fmt.Sprint("at ", id)}}
	}
	r.Output = out
	return r
}

func TestBufferKeepsTheLatest(t *testing.T) {
	b := record.NewBuffer(record.WithCount(3))
	for i := range uint64(10) {
		b.Record(rec(i, fmt.Sprint("w", i%2), ""))
		if n, _ := b.Len(); n != min(int(i)+1, 3) {
			t.Errorf("after %d records there are %d", i+1, n)
		}
	}
	var got []uint64
	for _, r := range b.Find(record.Query{}) {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, []uint64{9, 8, 7}) {
		t.Errorf("got %v", got)
	}
	if r := b.Find(record.Query{Subject: decision.Subject{Name: "w1"}, Limit: 1}); len(r) != 1 || r[0].ID != 9 {
		t.Errorf("got %v", r)
	}
	if r := b.Find(record.Query{Point: "rollout/scale"}); len(r) != 0 {
		t.Errorf("got %v", r)
	}
	if r, ok := b.Last("rollout/plan", decision.Subject{Kind: "CloneSet", Name: "w0"}); !ok || r.ID != 8 {
		t.Errorf("got %v", r)
	}
	for i := range uint64(3) {
		b.Record(rec(20+i, "w2", ""))
	}
	if _, ok := b.Last("rollout/plan", decision.Subject{Kind: "CloneSet", Name: "w0"}); ok {
		t.Error("something that was dropped is still found")
	}
}

func TestBufferIsBoundedByBytes(t *testing.T) {
	b := record.NewBuffer(record.WithBytes(100_000))
	for i := range uint64(500) {
		r := rec(i, "w", "")
		r.Input = decision.RankInput{Pods: make([]decision.PodFacts, 10)}
		b.Record(r)
		if _, bytes := b.Len(); bytes > 100_000 {
			t.Fatalf("it takes %d bytes", bytes)
		}
	}
	if n, _ := b.Len(); n < 20 || n > 200 {
		t.Errorf("%d records of about 2 KB are kept", n)
	}
	huge := rec(1000, "w", "")
	huge.Input = strings.Repeat("x", 200_000)
	b.Record(huge)
	if n, _ := b.Len(); n != 1 {
		t.Errorf("%d records are kept beside one that is too large", n)
	}
}

func TestOnlyChangesAreNews(t *testing.T) {
	b := record.NewBuffer()
	var news []string
	stop := b.OnChange(func(c record.Change) {
		was := "none"
		if c.Before != nil {
			was = decision.VerdictOf(*c.Before).Word
		}
		news = append(news, was+">"+decision.VerdictOf(c.After).Word)
		b.Find(record.Query{}) // it may ask
	})
	failed := rec(9, "a", "")
	failed.Outcome = decision.Failed
	for _, r := range []decision.Record{
		rec(1, "a", ""), rec(2, "a", ""), rec(3, "a", "Full"), rec(4, "a", "Full"), rec(5, "a", "Frozen"),
		rec(6, "b", ""), rec(7, "a", "Frozen"), rec(8, "a", ""), failed,
	} {
		b.Record(r)
	}
	stop()
	b.Record(rec(10, "c", ""))
	if got := strings.Join(news, " "); got != "none>Go Go>Hold Hold>Hold none>Go Hold>Go Go>Go" {
		t.Errorf("news: %s", got)
	}
}

func TestExplain(t *testing.T) {
	b := record.NewBuffer()
	e := newEngine(t, b)
	if err := e.Activate(context.Background(), with(t, friday)); err != nil {
		t.Fatal(err)
	}
	question := in(3)
	question.Strategy.Paused = true
	engine.Decide(context.Background(), e, decision.RolloutPlan(), web(), question)
	r, ok := b.Last("rollout/plan", web())
	if !ok {
		t.Fatal("nothing was recorded")
	}
	text, err := json.MarshalIndent(record.Explain(e, r), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"verdict": "Hold"`, `"reason": "Friday"`, `"message": "Nothing is moved on Fridays (5)."`, `"title": "No Fridays"`,
		`"input.workload.labels.freeze": "friday"`, `"place": "p.rego:3:1"`, `"until": "2026-01-05T00:00:00Z"`,
		`"input.now": 5`, `"input.groups.zone": {`, `"bundle": "user@`, `"title": "Paused"`, `"input.strategy.paused": true`, `"outcome": "Decided"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

func TestReplay(t *testing.T) {
	b := record.NewBuffer()
	e := newEngine(t, b)
	for _, n := range []int{1, 2} {
		engine.Decide(context.Background(), e, decision.RolloutPlan(), web(), in(n))
	}
	// Records survive being written and read.
	var file bytes.Buffer
	if err := record.Write(&file, b.Find(record.Query{})); err != nil {
		t.Fatal(err)
	}
	records, err := record.Read(&file)
	if err != nil || len(records) != 2 {
		t.Fatalf("read %v, %v", records, err)
	}
	for name, tc := range map[string]struct {
		set  bundle.Set
		want []string
		now  decision.Outcome
		kind record.Kind
	}{
		"the same policies decide the same":     {},
		"a new hold is a difference":            {set: with(t, friday), want: []string{"Holds"}, now: decision.Decided, kind: record.Stricter},
		"an override that is wrong is one too":  {set: with(t, "package override.rollout\nplan := 1"), want: []string{"Holds", "Limit", "MaxUnavailable"}, now: decision.Failed, kind: record.Lost},
		"a bundle that says nothing is not one": {set: with(t, "package extend.rollout.x\nhold contains {} if input.workload.name == \"other\"")},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := e.Compile(context.Background(), tc.set)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				d, err := record.Replay(context.Background(), e, s, r, 1)
				if err != nil {
					t.Fatal(err)
				}
				if d == nil {
					if tc.want != nil {
						t.Errorf("no difference, want one in %v", tc.want)
					}
					continue
				}
				if d.Kind != tc.kind {
					t.Errorf("it is %s, want %s", d.Kind, tc.kind)
				}
				if !slices.Equal(d.Fields, tc.want) || d.Now.Outcome != tc.now || d.Then.Revision == d.Now.Revision {
					t.Errorf("difference %+v, want one in %v", d, tc.want)
				}
			}
		})
	}
	if n, _ := b.Len(); n != 2 {
		t.Errorf("replaying was recorded: there are %d records", n)
	}
	if _, err := record.Replay(context.Background(), e, e.Snapshot(), decision.Record{Point: "no/point"}, 1); err == nil {
		t.Error("a point that does not exist was replayed")
	}
}

// TestADecisionThatComesTooLateIsAskedForOnceMore has the only worker busy until
// the first answer is late.
func TestADecisionThatComesTooLateIsAskedForOnceMore(t *testing.T) {
	begun, let, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	clock := func() time.Time {
		// The first one's beginning and end, and the second one's beginning.
		if asked.Add(1) == 3 {
			close(let)
			<-over
		}
		return time.Unix(0, 0).UTC()
	}
	e := newEngineWith(t, engine.WithParallel(1), engine.WithPatience(5), engine.WithClock(clock))
	asked.Store(-1) // that of whoever is in the way begins
	go func() {
		defer close(over)
		p := decision.RolloutPlan()
		p.Budget = time.Hour
		p.Check = func(decision.PlanInput, decision.PlanOutput) error {
			close(begun)
			<-let
			return nil
		}
		engine.Decide(context.Background(), e, p, web(), in(1))
	}()
	<-begun
	now, err := record.Retry(t.Context(), e, e.Snapshot(), decision.Record{Point: decision.RolloutPlan().Name, Subject: web(), Input: in(1)}, engine.Strikes)
	if err != nil || now.Outcome != decision.Decided {
		t.Errorf("got %s %s, %v", now.Outcome, now.Error, err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := record.Retry(ctx, e, e.Snapshot(), now, engine.Strikes); !errors.Is(err, gone) {
		t.Errorf("for somebody who is gone: %v", err)
	}
}

func TestADecisionIsTriedAsOftenAsItMayBeLate(t *testing.T) {
	var asked atomic.Int64
	e := newEngineWith(t, engine.WithClock(func() time.Time { asked.Add(1); return time.Unix(0, 0).UTC() }))
	s := compiled(t, e, endless)
	once := int64(0)
	for _, tc := range []struct {
		name  string
		then  decision.Outcome
		tries int
		times int64
	}{
		{"one that may be late once", decision.Decided, 1, 1},
		{"one that may be late three times", decision.Decided, 3, 3},
		{"one that was late when it was recorded", decision.TimedOut, 3, 1},
	} {
		asked.Store(0)
		now, err := record.Retry(t.Context(), e, s, decision.Record{Point: decision.RolloutPlan().Name, Subject: web(), Input: in(1), Outcome: tc.then}, tc.tries)
		if once == 0 {
			once = asked.Load()
		}
		if err != nil || now.Outcome != decision.TimedOut || asked.Load() != once*tc.times {
			t.Errorf("%s: %s after %d looks at the clock, %d for each, %v", tc.name, now.Outcome, asked.Load(), once, err)
		}
	}
}

func TestReadRefusesNonsense(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
		err  string
	}{
		"nothing":              {"", 0, ""},
		"an unknown point":     {`{"path": "no/point", "input": 7}`, 0, ""},
		"no JSON":              {"{", 0, "line 1"},
		"a question of a kind": {"\n" + `{"path": "rollout/plan", "input": {"update": "x"}}`, 0, "line 2: the input"},
		"an answer of a kind":  {`{"path": "rollout/plan", "result": {"limit": "x"}}`, 0, "line 1: the result"},
		"no decision":          {`{"msg": "hello"}`, 0, "line 1: it has no path"},
		"only a point":         {`{"path": "rollout/plan"}`, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := record.Read(strings.NewReader(tc.text))
			if len(got) != tc.want || (tc.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, n := range []int{10, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			buf := record.NewBuffer()
			pods := make([]decision.PodFacts, n)
			for i := range pods {
				pods[i] = decision.PodFacts{Name: "web", Labels: map[string]string{"app": "web"}}
			}
			r := rec(1, "a", "X")
			r.Input = decision.RankInput{Pods: pods}
			b.ReportAllocs()
			for b.Loop() {
				buf.Record(r)
			}
		})
	}
}
