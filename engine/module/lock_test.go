// SPDX-License-Identifier: Apache-2.0

package module

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// A caller that compiles while another compilation does not end gets an error, and does not wait for ever.
func TestACompilationThatDoesNotEndFailsOthers(t *testing.T) {
	m, err := Parse("a.rego", "package a\nx := 1")
	if err != nil {
		t.Fatal(err)
	}
	exclusive <- struct{}{} // it is being compiled
	before := lockWait
	lockWait = time.Millisecond
	defer func() { lockWait = before }()
	if _, err := Compile(map[string]*ast.Module{"a.rego": m}); !errors.Is(err, ErrBusy) {
		t.Errorf("compiling: %v", err)
	}
	if _, err := Prepare(t.Context(), rego.New(rego.Query("1"))); !errors.Is(err, ErrBusy) {
		t.Errorf("preparing: %v", err)
	}
	lockWait = before
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prepare(ctx, rego.New(rego.Query("1"))); !errors.Is(err, context.Canceled) {
		t.Errorf("preparing for a caller that has gone: %v", err)
	}
	<-exclusive
	if _, err := Compile(map[string]*ast.Module{"a.rego": m}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
