// SPDX-License-Identifier: Apache-2.0

// Package rules has engines for tests, with rules of users beside the built-in policies.
package rules

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
)

// patience has an engine wait longer than elsewhere, since the machine of a test may be busy.
const patience = 20

// compiled keeps what engines of this process have compiled, since that takes longer than most tests.
var compiled = struct {
	sync.Mutex
	builtin *bundle.Bundle
	base    engine.CompiledPolicies
	// active has the policies with modules of tests, by their text.
	active map[string]engine.CompiledPolicies
}{active: map[string]engine.CompiledPolicies{}}

// Engine is one with the built-in policies and modules of the platform; with these alone if the first is empty. It is closed at the end of the test.
func Engine(t testing.TB, module string, more ...string) *engine.Engine {
	t.Helper()
	if module == "" {
		return EngineWith(t)
	}
	text := strings.Join(append([]string{module}, more...), "\x00")
	compiled.Lock()
	same := compiled.active[text]
	compiled.Unlock()
	e := EngineWith(t, engine.WithCompiled(same))
	files := map[string]string{"r.rego": module}
	for i, text := range more {
		files[fmt.Sprintf("r%d.rego", i+1)] = text
	}
	b, err := bundle.FromFiles("rules", files)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	compiled.Lock()
	defer compiled.Unlock()
	compiled.active[text] = e.ActiveSnapshot().CompiledPolicies()
	return e
}

// EngineWith is an engine with the built-in policies and options; it waits long for an answer unless these say otherwise. It is closed at the end
// of the test.
func EngineWith(t testing.TB, opts ...engine.Option) *engine.Engine {
	t.Helper()
	builtin, base, err := compileBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.FromBundle(builtin, append([]engine.Option{engine.WithPatience(patience), engine.WithCompiled(base)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// compileBuiltin compiles the built-in policies once in a process.
func compileBuiltin() (*bundle.Bundle, engine.CompiledPolicies, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if compiled.builtin != nil {
		return compiled.builtin, compiled.base, nil
	}
	b, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		return nil, engine.CompiledPolicies{}, err
	}
	e, err := engine.FromBundle(b)
	if err != nil {
		return nil, engine.CompiledPolicies{}, err
	}
	defer e.Close()
	compiled.builtin, compiled.base = b, e.BaseSnapshot().CompiledPolicies()
	return compiled.builtin, compiled.base, nil
}
