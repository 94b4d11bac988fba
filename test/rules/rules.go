// SPDX-License-Identifier: Apache-2.0

// Package rules has engines for tests, with rules of users beside the built-in policies.
package rules

import (
	"fmt"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
)

// patience has an engine wait longer than elsewhere, since the machine of a test may be busy.
const patience = 20

// Engine is one with the built-in policies and modules of the platform; with these alone if the first is empty. It is closed at the end of the test.
func Engine(t testing.TB, module string, more ...string) *engine.Engine {
	t.Helper()
	e, err := engine.New(policies.Builtin, engine.WithPatience(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if module == "" {
		return e
	}
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
	return e
}
