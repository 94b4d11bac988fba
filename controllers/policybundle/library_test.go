package policybundle

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
)

const builtin = `package rollout

default plan := {"limit": 0, "maxUnavailable": 0, "holds": [], "scatter": []}

plan := {"limit": input.update, "maxUnavailable": input.maxUnavailable, "holds": [h | some h in holds], "scatter": []}

holds contains h if {
	some name
	some h in data.extend.rollout[name].hold
}
`

// Files of bundles. Each holds with a reason of its own.
func hold(pkg, reason, when string) map[string]string {
	return map[string]string{pkg + "/a.rego": "package extend.rollout." + pkg + "\n\nhold contains {\"reason\": \"" + reason + "\", \"message\": \"m\"} if " + when + "\n"}
}

func with(files map[string]string, path, text string) map[string]string {
	out := maps.Clone(files)
	out[path] = text
	return out
}

var (
	broken = map[string]string{"a.rego": "package extend.rollout.a\nhold contains"}
	// slow never ends in anybody's lifetime, and is quick in its own test.
	slow = hold("slow", "Slow", `{
	r := numbers.range(1, 2000)
	some a in r; some b in r; some c in r; some d in r
	a + b + c + d == input.update
}`)
)

// runner does the work here, unless it is told to fail.
type runner struct {
	fail error
	runs int
	now  gate.Report
}

func (r *runner) Run(ctx context.Context, job gate.Job) (gate.Report, error) {
	r.runs++
	if r.fail != nil {
		return gate.Report{}, r.fail
	}
	if r.now.Refused != "" {
		return r.now, nil
	}
	return gate.InProcess{}.Run(ctx, job)
}

func newLibrary(t *testing.T, opts ...engine.Option) (*Library, *runner) {
	t.Helper()
	b, err := bundle.FromFiles("builtin", map[string]string{"rollout/plan.rego": builtin}, bundle.AsBuiltin())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.FromBundle(b, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r := &runner{}
	return NewLibrary(e, gate.New(b, gate.WithRunner(r)), nil), r
}

// reasons are the holds that the library's policies come to.
func reasons(l *Library) string {
	plan, rec := engine.Decide(context.Background(), l.engine, decision.RolloutPlan(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, decision.PlanInput{Update: 3})
	if rec.Outcome != decision.Decided {
		return string(rec.Outcome) + " " + rec.Error
	}
	var out []string
	for _, h := range plan.Holds {
		out = append(out, h.Reason)
	}
	return strings.Join(out, " ")
}

func admit(t *testing.T, l *Library, name string, files map[string]string) {
	t.Helper()
	if _, err := l.Admit(t.Context(), name, files); err != nil {
		t.Fatal(err)
	}
}

func refuse(t *testing.T, l *Library, name string, files map[string]string, reason, message string) {
	t.Helper()
	_, err := l.Admit(t.Context(), name, files)
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Reason != reason || !strings.Contains(err.Error(), message) {
		t.Fatalf("got %v, want %s: %s", err, reason, message)
	}
}

func want(t *testing.T, l *Library, reasonsWant string) {
	t.Helper()
	if got := reasons(l); got != reasonsWant {
		t.Errorf("the holds are %q, want %q", got, reasonsWant)
	}
}

func TestABundleThatIsRefusedLeavesWhatIsActive(t *testing.T) {
	l, r := newLibrary(t)
	good := hold("a", "One", "true")
	admit(t, l, "a", good)
	for name, tc := range map[string]struct {
		files           map[string]string
		reason, message string
	}{
		"it does not parse":       {broken, "CompileFailed", "a.rego:2:"},
		"it is of another's kind": {map[string]string{"a.rego": "package rollout\nx := 1"}, "Unsupported", "a.rego:1:1 package rollout"},
		"a fact is misspelt":      {hold("a", "One", "input.udpate > 1"), "CompileFailed", "a/a.rego:3:"},
		"an answer is of no use":  {map[string]string{"a.rego": "package override.rollout\nplan := 1"}, "OutputInvalid", "a.rego:2:1"},
		"a test fails":            {with(good, "a/a_test.rego", "package extend.rollout.a_test\ntest_x if 1 == 2"), "TestsFailed", "a/a_test.rego:2:1"},
	} {
		t.Run(name, func(t *testing.T) {
			refuse(t, l, "a", tc.files, tc.reason, tc.message)
			want(t, l, "One")
			runs := r.runs
			refuse(t, l, "a", tc.files, tc.reason, tc.message)
			if r.runs != runs {
				t.Error("the same was checked twice")
			}
		})
	}
	admit(t, l, "a", hold("a", "Two", "true"))
	want(t, l, "Two")
}

func TestTheOrderOfFilesDoesNotMatter(t *testing.T) {
	files := map[string]string{}
	for _, pkg := range []string{"a", "b", "c", "d", "e", "f"} {
		maps.Copy(files, hold(pkg, strings.ToUpper(pkg), "true"))
	}
	revisions := map[string]bool{}
	for range 10 {
		l, r := newLibrary(t)
		revision, err := l.Admit(t.Context(), "a", maps.Clone(files))
		if err != nil {
			t.Fatal(err)
		}
		revisions[revision] = true
		admit(t, l, "a", maps.Clone(files))
		if r.runs != 1 || len(revisions) != 1 {
			t.Fatalf("%d runs, %d revisions", r.runs, len(revisions))
		}
	}
}

func TestOtherTestsAreRunThoughTheyAreNoPartOfTheRevision(t *testing.T) {
	l, r := newLibrary(t)
	files := hold("a", "One", "true")
	admit(t, l, "a", files)
	refuse(t, l, "a", with(files, "a/a_test.rego", "package extend.rollout.a_test\ntest_x if false"), "TestsFailed", "a_test.rego")
	admit(t, l, "a", with(files, "a/a_test.rego", "package extend.rollout.a_test\ntest_x if true"))
	if runs := r.runs; len(l.Files("a")) != 2 || runs != 3 {
		t.Errorf("%d files after %d runs", len(l.Files("a")), runs)
	}
	l.Gone()
	admit(t, l, "a", with(files, "a/a_test.rego", "package extend.rollout.a_test\ntest_x if true"))
	if r.runs != 3 {
		t.Error("the same was checked twice")
	}
}

func TestTwoBundlesWithOnePackage(t *testing.T) {
	l, _ := newLibrary(t)
	admit(t, l, "first", hold("a", "First", "true"))
	refuse(t, l, "second", hold("a", "Second", "true"), "CompileFailed", "package extend.rollout.a of bundle second belongs to bundle first already")
	want(t, l, "First")
	if err := l.Remove(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	admit(t, l, "second", hold("a", "Second", "true"))
	want(t, l, "Second")
}

func TestRemove(t *testing.T) {
	t.Run("a bundle that is refused", func(t *testing.T) {
		l, _ := newLibrary(t)
		refuse(t, l, "a", broken, "CompileFailed", "a.rego")
		if err := l.Remove(t.Context(), "a"); err != nil || len(l.refused) != 0 {
			t.Errorf("%v, %d are remembered", err, len(l.refused))
		}
	})
	t.Run("a bundle whose newest files are refused", func(t *testing.T) {
		l, _ := newLibrary(t)
		admit(t, l, "a", hold("a", "One", "true"))
		refuse(t, l, "a", broken, "CompileFailed", "a.rego")
		if err := l.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		want(t, l, "")
	})
	t.Run("a bundle beside others that were rolled back without it", func(t *testing.T) {
		w := watcher{make(chan engine.Rollback, 10)}
		l, _ := newLibrary(t, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
		admit(t, l, "a", hold("a", "A", "true"))
		admit(t, l, "slow", slow)
		exhaust(t, l, w)
		want(t, l, "A")
		admit(t, l, "b", hold("b", "B", "true"))
		admit(t, l, "slow", slow) // with others it may try again
		l.Gone()
		if err := l.Remove(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		want(t, l, "A")
		if gone := l.Gone(); strings.Join(gone, " ") != "slow" || l.Active("slow") != "" {
			t.Errorf("gone are %v", gone)
		}
	})
}

func TestWhatIsNotTheBundlesFault(t *testing.T) {
	t.Run("a gate that fails is asked again", func(t *testing.T) {
		l, r := newLibrary(t)
		admit(t, l, "a", hold("a", "One", "true"))
		r.fail = errors.New("fork: no memory")
		var refused *Refusal
		if _, err := l.Admit(t.Context(), "a", hold("a", "Two", "true")); err == nil || errors.As(err, &refused) {
			t.Fatalf("got %v", err)
		}
		want(t, l, "One")
		r.fail = nil
		admit(t, l, "a", hold("a", "Two", "true"))
		want(t, l, "Two")
	})
	t.Run("our own end", func(t *testing.T) {
		l, r := newLibrary(t)
		r.now = gate.Report{Refused: gate.Limits} // what a child that was ended comes to
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Admit(ctx, "a", hold("a", "One", "true")); !errors.Is(err, context.Canceled) || len(l.refused) != 0 {
			t.Errorf("got %v, and %d are remembered as refused", err, len(l.refused))
		}
	})
	t.Run("a machine that was busy", func(t *testing.T) {
		l, r := newLibrary(t)
		now := time.Now()
		l.clock = func() time.Time { return now }
		r.now = gate.Report{Refused: gate.Limits}
		refuse(t, l, "a", hold("a", "One", "true"), "TestsFailed", "")
		r.now = gate.Report{}
		refuse(t, l, "a", hold("a", "One", "true"), "TestsFailed", "") // a minute each time would be too much
		now = now.Add(limitsHold)
		admit(t, l, "a", hold("a", "One", "true"))
	})
}

// watcher is an observer that passes rollbacks on.
type watcher struct{ rolledBack chan engine.Rollback }

func (watcher) Activated(string)                {}
func (watcher) Stuck(decision.Name, int)        {}
func (watcher) Throttled(string, decision.Name) {}
func (w watcher) RolledBack(r engine.Rollback)  { w.rolledBack <- r }

// exhaust asks until the watchdog rolls back.
func exhaust(t *testing.T, l *Library, w watcher) {
	t.Helper()
	p := decision.RolloutPlan()
	p.Budget = 20 * time.Millisecond
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		engine.Decide(t.Context(), l.engine, p, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, decision.PlanInput{Update: -1})
		select {
		case <-w.rolledBack:
			return
		default:
		}
	}
	t.Fatal("the watchdog did not roll back")
}

func TestRollback(t *testing.T) {
	w := watcher{make(chan engine.Rollback, 10)}
	l, r := newLibrary(t, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
	admit(t, l, "a", hold("a", "One", "true"))
	admit(t, l, "slow", hold("slow", "Quick", "true"))
	good := l.Active("slow")
	admit(t, l, "slow", slow)
	exhaust(t, l, w)
	if gone := l.Gone(); strings.Join(gone, " ") != "slow" {
		t.Errorf("gone are %v", gone)
	}
	if l.Active("slow") != good || l.Active("a") == "" {
		t.Errorf("active are %q and %q, want what was before", l.Active("slow"), l.Active("a"))
	}
	want(t, l, "One Quick")
	checks := l.gate
	l.gate = gate.New(l.engine.Builtin(), gate.WithRunner(refusing{t}))
	refuse(t, l, "slow", slow, "RolledBack", "change one to try again")
	l.gate = checks
	want(t, l, "One Quick")
	admit(t, l, "slow", hold("slow", "Quicker", "true"))
	want(t, l, "One Quicker")

	t.Run("while another bundle is in the gate", func(t *testing.T) {
		again := with(slow, "slow/b.rego", "package extend.rollout.slow\n")
		admit(t, l, "slow", again)
		r.now = gate.Report{}
		during := &during{r, func() { exhaust(t, l, w) }}
		l.gate = gate.New(l.engine.Builtin(), gate.WithRunner(during))
		admit(t, l, "b", hold("b", "Two", "true"))
		want(t, l, "One Quicker Two")
		if gone := l.Gone(); strings.Join(gone, " ") != "slow" {
			t.Errorf("gone are %v", gone)
		}
	})
}

// refusing is not to be asked.
type refusing struct{ t *testing.T }

func (r refusing) Run(context.Context, gate.Job) (gate.Report, error) {
	r.t.Error("a bundle that was rolled back went through the gate again")
	return gate.Report{}, errors.New("refused")
}

// during does something before it does the work.
type during struct {
	gate.Runner
	first func()
}

func (d *during) Run(ctx context.Context, job gate.Job) (gate.Report, error) {
	d.first()
	return d.Runner.Run(ctx, job)
}
