// SPDX-License-Identifier: Apache-2.0

// Package bounded prevents calls of Rego's built-in functions from making one huge allocation, and
// from running without end where nothing can stop them.
//
// OPA checks for cancellation between expressions. A call of a built-in function is one step, so its
// cost must be known before it begins. The memory of an operand says little about that: a rule can
// double an array thirty times, which shares its parts, and printing it writes a billion elements. So
// each function that prints, compares, copies or searches its operands measures them first, and fails
// with an error that names the function and the limit.
//
// An import of the package replaces the functions in the whole process. Package module makes rules
// call Value wherever they make a value themselves.
package bounded

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// Limits of one call of a built-in function.
const (
	// MaxNodes is how many values an operand that is compared, sorted or joined may have, and a value that
	// a rule makes.
	MaxNodes = 1 << 22
	// MaxText is how many bytes of text such a value may have.
	MaxText = 64 << 20
	// MaxPrinted is how many values an operand that is written as text may have, and how many elements a
	// result that is made from a text, or a range of numbers.
	MaxPrinted = 1 << 20
	// MaxBytes is how many bytes a text may have that a function reads or writes.
	MaxBytes = 16 << 20
	// MaxParsed is how many bytes of JSON a function reads.
	MaxParsed = 1 << 20
	// MaxDigits is how many digits a number may have, and the largest exponent.
	MaxDigits = 1000
	// MaxSteps is how many steps a search that tries a pattern at each place of a text may take.
	MaxSteps = 1 << 28
)

// errCancelled ends the evaluation, like OPA's own error for a cancelled query.
var errCancelled = topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: "caller cancelled query execution"}}

// call is a call of a built-in function.
type call struct {
	operands []*ast.Term
	cancel   topdown.Cancel
}

// guard returns why a call is not made; nil if it may be made.
type guard func(c *call) error

// Value is the function that rules call with each value that they make from others. It returns the
// value if it is within the limits of a comparison. Policies may not call it themselves.
var Value = replaceBuiltins(&ast.Builtin{
	Name: "internal.bounded_value",
	Decl: types.NewFunction(types.Args(types.A), types.A),
})

// replaceBuiltins replaces OPA's functions and adds the one that measures values, once
// and before anything is evaluated.
func replaceBuiltins(value *ast.Builtin) *ast.Builtin {
	for name, g := range guards {
		inner := topdown.GetBuiltin(name)
		if inner == nil {
			continue // OPA has no such function; a test ensures that this does not happen
		}
		arity := ast.BuiltinMap[name].Decl.Arity() // a further operand is for the result
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			if err := g(&call{operands[:min(arity, len(operands))], bctx.Cancel}); err != nil {
				return err
			}
			return inner(bctx, operands, iter)
		})
	}
	ast.RegisterBuiltin(value)
	topdown.RegisterBuiltinFunc(value.Name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		m := meter{maxNodes: MaxNodes, maxBytes: MaxText, cancel: bctx.Cancel}
		if !m.countValue(operands[0].Value) {
			return valueErr(m.err, bctx.Location)
		}
		return iter(operands[0])
	})
	return value
}

// IsGuarded reports whether the operands of a function are measured before it is called.
func IsGuarded(name string) bool {
	_, ok := guards[name]
	return ok
}

// MeasuresOperands reports whether an operand that is made in a call need not be measured before it:
// the function measures the parts that it compares or copies, and returns no part that it has not
// measured.
func MeasuresOperands(name string) bool {
	return IsGuarded(name) && !looksAtKeys[name]
}

// valueErr is the error of a rule that makes a value beyond the limits.
func valueErr(err error, at *ast.Location) error {
	if errors.Is(err, errCancelled) {
		return err
	}
	return &topdown.Error{Code: topdown.BuiltinErr, Message: "the value of an expression is too large: " + err.Error(), Location: at}
}
