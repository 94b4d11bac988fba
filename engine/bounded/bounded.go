// SPDX-License-Identifier: Apache-2.0

// Package bounded keeps calls of Rego's built-in functions from making one huge
// allocation, or from running indefinitely where nothing can stop them.
//
// OPA looks at whether an evaluation is cancelled between expressions. A built-in
// function is one step, so what it may cost must be known before it begins. Memory
// says little about that: a rule can double an array thirty times over, which shares
// its parts, and printing it writes a billion of them. So each function that prints,
// compares, copies or searches what it is given measures that first, and fails with
// an error that names the function and the limit.
//
// To import the package replaces the functions in the whole process. Value is what
// package module has rules call wherever they make a value themselves.
package bounded

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// Limits of one call of a built-in function.
const (
	// MaxNodes is how many values there may be in what is compared, sorted or joined,
	// and in what a rule makes.
	MaxNodes = 1 << 22
	// MaxText is how many bytes of text there may be in that.
	MaxText = 64 << 20
	// MaxPrinted is how many values there may be in what is written as text, and how
	// many elements in what is made of a text or counts up.
	MaxPrinted = 1 << 20
	// MaxBytes is how many bytes a text may have that a function reads or writes.
	MaxBytes = 16 << 20
	// MaxParsed is how many bytes of JSON a function reads.
	MaxParsed = 1 << 20
	// MaxDigits is how many digits a number may have, and the largest exponent.
	MaxDigits = 1000
	// MaxSteps is how many steps a search may take that tries a pattern at each
	// place of a text.
	MaxSteps = 1 << 28
)

// errCancelled ends the evaluation, as OPA does where it sees that it was cancelled.
var errCancelled = topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: "caller cancelled query execution"}}

// call is a call of a built-in function.
type call struct {
	operands []*ast.Term
	cancel   topdown.Cancel
}

// guard says why a call is not made; nil if it is.
type guard func(c *call) error

// Value is the function that rules call with each value that they make of others,
// and that answers it if it is within the limits of a comparison. It is not among
// what policies may call.
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
			continue // no policy can call it; a test holds that there is none
		}
		arity := ast.BuiltinMap[name].Decl.Arity() // behind it is where the answer goes
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

// IsGuarded reports whether a function looks at its operands before it is called.
func IsGuarded(name string) bool {
	_, ok := guards[name]
	return ok
}

// MeasuresOperands reports whether an operand that is made in a call needs no measuring before
// it: the function measures what it compares or copies of it, and answers no part of it
// that it has not measured.
func MeasuresOperands(name string) bool {
	return IsGuarded(name) && !looksAtKeys[name]
}

// valueErr is what a rule fails with that makes a value beyond the limits.
func valueErr(err error, at *ast.Location) error {
	if errors.Is(err, errCancelled) {
		return err
	}
	return &topdown.Error{Code: topdown.BuiltinErr, Message: "the value of an expression is too large: " + err.Error(), Location: at}
}
