// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
	"github.com/regatta-sh/regatta/engine/record"
)

func rec(id uint64, name, reason string) decision.Record {
	r := decision.Record{ID: id, Point: "rollout/plan", Outcome: decision.Decided, Subject: decision.Subject{Kind: "CloneSet", Name: name}}
	out := rollout.PlanOutput{}
	if reason != "" {
		out.Holds = []decision.Hold{{Rule: "r", Reason: reason, Message: fmt.Sprint("at ", id)}}
	}
	r.Output = out
	return r
}

func TestAKindOfTwoGroupsIsToldApart(t *testing.T) {
	b := record.NewBuffer()
	other := decision.Record{ID: 99, Point: "rollout/plan", Subject: decision.Subject{Group: "apps", Kind: "StatefulSet", Name: "w1"}}
	ours := decision.Record{ID: 100, Point: "rollout/plan", Subject: decision.Subject{Group: "apps.kruise.io", Kind: "StatefulSet", Name: "w1"}}
	b.RecordDecision(other)
	b.RecordDecision(ours)
	for _, want := range []decision.Record{other, ours} {
		if r := b.FindRecords(record.Query{Subject: want.Subject}); len(r) != 1 || r[0].ID != want.ID {
			t.Errorf("a kind of two groups: %v are found, want %d", r, want.ID)
		}
		if r, ok := b.LatestRecord("rollout/plan", want.Subject); !ok || r.ID != want.ID {
			t.Errorf("a kind of two groups: %d is the last, want %d", r.ID, want.ID)
		}
	}
}

func TestBufferKeepsTheLatest(t *testing.T) {
	b := record.NewBuffer(record.WithCount(3))
	for i := range uint64(10) {
		b.RecordDecision(rec(i, fmt.Sprint("w", i%2), ""))
		if n, _ := b.Len(); n != min(int(i)+1, 3) {
			t.Errorf("after %d records there are %d", i+1, n)
		}
	}
	var got []uint64
	for _, r := range b.FindRecords(record.Query{}) {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, []uint64{9, 8, 7}) {
		t.Errorf("got %v", got)
	}
	if r := b.FindRecords(record.Query{Subject: decision.Subject{Name: "w1"}, Limit: 1}); len(r) != 1 || r[0].ID != 9 {
		t.Errorf("got %v", r)
	}
	if r := b.FindRecords(record.Query{Point: "rollout/scale"}); len(r) != 0 {
		t.Errorf("got %v", r)
	}
	if r, ok := b.LatestRecord("rollout/plan", decision.Subject{Kind: "CloneSet", Name: "w0"}); !ok || r.ID != 8 {
		t.Errorf("got %v", r)
	}
	for i := range uint64(3) {
		b.RecordDecision(rec(20+i, "w2", ""))
	}
	if _, ok := b.LatestRecord("rollout/plan", decision.Subject{Kind: "CloneSet", Name: "w0"}); ok {
		t.Error("something that was dropped is still found")
	}
}

func TestBufferIsBoundedByBytes(t *testing.T) {
	b := record.NewBuffer(record.WithBytes(100_000))
	for i := range uint64(500) {
		r := rec(i, "w", "")
		r.Input = rollout.RankInput{Pods: make([]rollout.PodFacts, 10)}
		b.RecordDecision(r)
		if _, bytes := b.Len(); bytes > 100_000 {
			t.Fatalf("it takes %d bytes", bytes)
		}
	}
	if n, _ := b.Len(); n < 20 || n > 200 {
		t.Errorf("%d records of about 2 KB are kept", n)
	}
	huge := rec(1000, "w", "")
	huge.Input = strings.Repeat("x", 200_000)
	b.RecordDecision(huge)
	if n, _ := b.Len(); n != 1 {
		t.Errorf("%d records are kept beside one that is too large", n)
	}
}

func TestSizeLooksAtAllPartsOfAList(t *testing.T) {
	pods := make([]rollout.PodFacts, 1000)
	for i := 500; i < len(pods); i++ { // the first ones are no sample of the others
		pods[i].Name = strings.Repeat("x", 1000)
	}
	r := rec(1, "w", "")
	r.Input = rollout.RankInput{Pods: pods}
	if n := record.MemorySize(r); n < 400_000 || n > 2_000_000 {
		t.Errorf("names of 500,000 bytes are measured as %d", n)
	}
}

// A rule that knows which elements of a list are looked at hides nothing from the bound.
func TestSizeLooksAtAllThatARuleWrites(t *testing.T) {
	const long = 8000
	for _, n := range []int{1, 17, 500} {
		for at := range n {
			holds := make([]decision.Hold, n)
			holds[at].Message = strings.Repeat("x", long)
			small := rec(1, "w", "")
			small.Output = rollout.PlanOutput{Holds: make([]decision.Hold, n)}
			large := small
			large.Output = rollout.PlanOutput{Holds: holds}
			if got := record.MemorySize(large) - record.MemorySize(small); got != long {
				t.Fatalf("a message of %d bytes in hold %d of %d is measured as %d", long, at, n, got)
			}
		}
	}
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprint(i)] = ""
	}
	many["last"] = strings.Repeat("x", long)
	r := rec(1, "w", "")
	r.Input = rollout.RankInput{Workload: rollout.Workload{Annotations: many}}
	if n := record.MemorySize(r); n < long || n > 100_000 {
		t.Errorf("annotations with %d bytes in one of 1,001 are measured as %d", long, n)
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
		b.FindRecords(record.Query{}) // it may ask
	})
	failed := rec(9, "a", "")
	failed.Outcome = decision.Failed
	for _, r := range []decision.Record{
		rec(1, "a", ""), rec(2, "a", ""), rec(3, "a", "Full"), rec(4, "a", "Full"), rec(5, "a", "Frozen"),
		rec(6, "b", ""), rec(7, "a", "Frozen"), rec(8, "a", ""), failed,
	} {
		b.RecordDecision(r)
	}
	stop()
	b.RecordDecision(rec(10, "c", ""))
	if got := strings.Join(news, " "); got != "none>Go Go>Hold Hold>Hold none>Go Hold>Go Go>Go" {
		t.Errorf("news: %s", got)
	}
}

func TestExplain(t *testing.T) {
	b := record.NewBuffer()
	e := enginetest.New(t, b)
	if err := e.ActivateBundles(context.Background(), enginetest.NewBundleSet(t, enginetest.Friday)); err != nil {
		t.Fatal(err)
	}
	question := enginetest.PlanFacts(3)
	question.Strategy.Paused = true
	engine.Decide(context.Background(), e, rollout.PlanPoint(), enginetest.WebSubject(), question)
	r, ok := b.LatestRecord("rollout/plan", enginetest.WebSubject())
	if !ok {
		t.Fatal("nothing was recorded")
	}
	text, err := json.MarshalIndent(record.ExplainDecision(e, r), "", " ")
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
			pods := make([]rollout.PodFacts, n)
			for i := range pods {
				pods[i] = rollout.PodFacts{Name: "web", Labels: map[string]string{"app": "web"}}
			}
			r := rec(1, "a", "X")
			r.Input = rollout.RankInput{Pods: pods}
			b.ReportAllocs()
			for b.Loop() {
				buf.RecordDecision(r)
			}
		})
	}
}
