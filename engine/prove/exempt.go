// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/module"
)

// ConditionError says that a condition on the input is none.
type ConditionError struct{ Err error }

func (e ConditionError) Error() string { return e.Err.Error() }
func (e ConditionError) Unwrap() error { return e.Err }

// exemption is a condition on the input. A nil one is never true.
type exemption struct {
	compiler *ast.Compiler
	prepared rego.PreparedEvalQuery
}

const exemptionFile = "condition.rego"

// newExemption compiles a condition; nil if there is none.
func newExemption(text string) (*exemption, error) {
	if text == "" {
		return nil, nil
	}
	m, err := module.Parse(exemptionFile, "package prove\n\nimport future.keywords.not\n\nexempt if {\n"+text+"\n}\n")
	if err != nil {
		return nil, ConditionError{fmt.Errorf("reading the condition %q: %w", text, err)}
	}
	compiler, err := module.Compile(map[string]*ast.Module{exemptionFile: m})
	if err != nil {
		return nil, ConditionError{fmt.Errorf("compiling the condition %q: %w", text, err)}
	}
	prepared, err := module.PrepareQuery(context.Background(), rego.New(rego.Query("data.prove.exempt"), rego.Compiler(compiler), rego.StrictBuiltinErrors(true)))
	if err != nil {
		return nil, ConditionError{fmt.Errorf("compiling the condition %q: %w", text, err)}
	}
	return &exemption{compiler, prepared}, nil
}

// conditionRules are the rules of the condition, so that the facts that it reads vary too.
func (x *exemption) conditionRules() []*ast.Rule {
	if x == nil {
		return nil
	}
	return x.compiler.Modules[exemptionFile].Rules
}

func (x *exemption) hasRule(r *ast.Rule) bool {
	return x != nil && r.Module != nil && r.Module.Package.Path.Equal(x.compiler.Modules[exemptionFile].Package.Path)
}

// isExempt reports whether the condition is true of an input.
func (x *exemption) isExempt(ctx context.Context, e *engine.Engine, in any) (bool, error) {
	if x == nil {
		return false, nil
	}
	input, err := e.Codec().Encode(in)
	if err != nil {
		return false, fmt.Errorf("evaluating the condition: %w", err)
	}
	rs, err := x.prepared.Eval(ctx, rego.EvalParsedInput(input))
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, ConditionError{fmt.Errorf("evaluating the condition: %w", err)}
	}
	return rs.Allowed(), nil
}
