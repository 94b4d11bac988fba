// SPDX-License-Identifier: Apache-2.0

package module

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// A compilation that does not end steps aside, and others are compiled. Where too many are, a caller gets an error and does not
// wait indefinitely.
func TestACompilationThatDoesNotEndStepsAside(t *testing.T) {
	m, err := Parse("a.rego", "package a\nx := 1")
	if err != nil {
		t.Fatal(err)
	}
	compile := func() error {
		_, err := Compile(map[string]*ast.Module{"a.rego": m})
		return err
	}
	before := lane
	defer func() { lane = before }()
	lane = NewLane()
	lane.SetTimes(time.Millisecond, time.Minute)
	var release []func()
	for range mostAside + 1 {
		if err := compile(); err != nil {
			t.Fatalf("with %d that do not end: %v", len(release), err)
		}
		end, err := lane.AcquireTurn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, end)
	}
	lane.SetTimes(time.Millisecond, time.Millisecond)
	if err := compile(); !errors.Is(err, ErrBusy) {
		t.Errorf("compiling with %d that do not end: %v", len(release), err)
	}
	if _, err := PrepareQuery(t.Context(), rego.New(rego.Query("1"))); !errors.Is(err, ErrBusy) {
		t.Errorf("preparing: %v", err)
	}
	lane.SetTimes(time.Millisecond, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := PrepareQuery(ctx, rego.New(rego.Query("1"))); !errors.Is(err, context.Canceled) {
		t.Errorf("preparing for a caller that has gone: %v", err)
	}
	release[0]()
	if err := compile(); err != nil { // the one that has the lane steps aside
		t.Errorf("once one has ended: %v", err)
	}
	for range 2 { // the second time does nothing
		for _, end := range release {
			end()
		}
	}
	if lane.aside != 0 || len(lane.slot) != 0 {
		t.Errorf("after all have ended %d are aside, and %d have the lane", lane.aside, len(lane.slot))
	}
}

// No two compilers have an object of the types of built-in functions in common, since OPA writes into it.
func TestCompilersShareNoObjectsOfBuiltInFunctions(t *testing.T) {
	all := PolicyCapabilities().Builtins
	a, b := privateBuiltins(all), privateBuiltins(all)
	shared, objects := map[*types.Object]bool{}, 0
	each := func(builtin *ast.Builtin, do func(*types.Object)) {
		args := builtin.Decl.NamedFuncArgs()
		for _, x := range append(args.Args, args.Variadic, builtin.Decl.NamedResult()) {
			eachObject(x, do)
		}
	}
	for i, builtin := range all {
		if a[i].Name != builtin.Name || types.Compare(a[i].Decl, builtin.Decl) != 0 {
			t.Errorf("%s becomes %s %s", builtin.Name, a[i].Name, a[i].Decl)
		}
		each(builtin, func(o *types.Object) { shared[o] = true })
		each(a[i], func(o *types.Object) { shared[o] = true })
	}
	for _, builtin := range b {
		each(builtin, func(o *types.Object) {
			if objects++; shared[o] {
				t.Errorf("%s shares %s", builtin.Name, o)
			}
		})
	}
	if objects == 0 {
		t.Error("no function has an object")
	}
}

func eachObject(t types.Type, do func(*types.Object)) {
	switch t := t.(type) {
	case *types.NamedType:
		eachObject(t.Type, do)
	case *types.Object:
		do(t)
		for _, p := range t.StaticProperties() {
			eachObject(p.Value, do)
		}
		if d := t.DynamicProperties(); d != nil {
			eachObject(d.Key, do)
			eachObject(d.Value, do)
		}
	case *types.Set:
		eachObject(t.Of(), do)
	case *types.Array:
		for i := range t.Len() {
			eachObject(t.Select(i), do)
		}
		eachObject(t.Dynamic(), do)
	case types.Any:
		for _, x := range t {
			eachObject(x, do)
		}
	}
}
