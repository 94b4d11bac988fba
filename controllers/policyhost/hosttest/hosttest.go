// SPDX-License-Identifier: Apache-2.0

// Package hosttest has policies for tests of code that follows policy bundles, and reads the resulting
// decisions from an engine.
package hosttest

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
)

const plan = `package rollout

default plan := {"limit": 0, "maxUnavailable": 0, "holds": [], "scatter": []}

plan := {"limit": input.update, "maxUnavailable": input.maxUnavailable, "holds": [h | some h in holds], "scatter": []}

holds contains h if {
	some name
	some h in data.extend.rollout[name].hold
}
`

// BuiltinPolicies returns built-in policies: those of protection, and a plan that holds only for the
// reasons of bundles.
func BuiltinPolicies(t testing.TB) fs.FS {
	t.Helper()
	files := fstest.MapFS{"rollout/plan.rego": {Data: []byte(plan)}}
	paths, err := fs.Glob(policies.Builtin, "protection/*.rego")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is nothing about protection: %v", err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(policies.Builtin, path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = &fstest.MapFile{Data: text}
	}
	return files
}

var (
	compileOnce sync.Once
	compiled    engine.CompiledPolicies
)

// WithCompiled is an option with which an engine takes BuiltinPolicies that this process has compiled before.
func WithCompiled(t testing.TB) engine.Option {
	t.Helper()
	compileOnce.Do(func() {
		e, err := engine.New(BuiltinPolicies(t))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		compiled = e.BaseSnapshot().CompiledPolicies()
	})
	return engine.WithCompiled(compiled)
}

// HoldFiles returns the files of a bundle that holds with a reason of its own.
func HoldFiles(pkg, reason, when string) map[string]string {
	return map[string]string{pkg + "/a.rego": "package extend.rollout." + pkg + "\n\nhold contains {\"reason\": \"" + reason + "\", \"message\": \"m\"} if " + when + "\n"}
}

// SlowFiles returns the files of a bundle that does not decide in time, but is quick in
// its own test.
func SlowFiles() map[string]string {
	return HoldFiles("slow", "Slow", `{
	r := numbers.range(1, 2000)
	some a in r; some b in r; some c in r; some d in r
	a + b + c + d == input.update
}`)
}

// HoldReasons returns the reasons for which the policies of an engine hold a CloneSet in
// a namespace.
func HoldReasons(e *engine.Engine, namespace string) string {
	plan, rec := engine.Decide(context.Background(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: namespace, Name: "web"}, rollout.PlanInput{Update: 3})
	if rec.Outcome != decision.Decided {
		return string(rec.Outcome) + " " + rec.Error
	}
	var out []string
	for _, h := range plan.Holds {
		out = append(out, h.Reason)
	}
	return strings.Join(out, " ")
}

// Watcher is an observer that passes rollbacks on.
type Watcher struct{ rolledBack chan engine.Rollback }

// NewWatcher makes a Watcher.
func NewWatcher() Watcher { return Watcher{make(chan engine.Rollback, 10)} }

// EngineOptions returns options of an engine with which TriggerRollback is quick.
func (w Watcher) EngineOptions() []engine.Option {
	return []engine.Option{engine.WithObserver(w), engine.WithGrace(20 * time.Millisecond)}
}

// RevisionActivated implements engine.Observer.
func (Watcher) RevisionActivated(string) {}

// EvaluationStuck implements engine.Observer.
func (Watcher) EvaluationStuck(decision.Name, int) {}

// DecisionThrottled implements engine.Observer.
func (Watcher) DecisionThrottled(string, decision.Name) {}

// BundlesWithheld implements engine.Observer.
func (Watcher) BundlesWithheld(bundle.Set) {}

// RolledBack implements engine.Observer.
func (w Watcher) RolledBack(r engine.Rollback) { w.rolledBack <- r }

// TriggerRollback makes decisions until the watchdog rolls back the bundle of SlowFiles.
func (w Watcher) TriggerRollback(t testing.TB, e *engine.Engine) {
	t.Helper()
	p := rollout.PlanPoint()
	p.Budget = 20 * time.Millisecond
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		engine.Decide(t.Context(), e, p, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, rollout.PlanInput{Update: -1})
		select {
		case <-w.rolledBack:
			return
		default:
		}
	}
	t.Fatal("the watchdog did not roll back")
}
