// SPDX-License-Identifier: Apache-2.0

// Package module reads and compiles Rego modules in the same way everywhere: a policy must have the
// same meaning in the engine, the gate and the command line.
package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/engine/bounded"
)

// Parse reads one module as Rego v2. Under v1 `not f(input.missing)` is undefined, so that a deny rule
// fails open silently; under v2 it is true.
func Parse(file, source string) (*ast.Module, error) {
	parsed, err := ast.ParseModuleWithOpts(file, source, ast.ParserOptions{
		Capabilities:      PolicyCapabilities(),
		RegoVersion:       ast.RegoV2,
		ProcessAnnotation: true,
	})
	if err != nil {
		return nil, fmt.Errorf("parsing module: %w", problemsFromErrors(file, err))
	}
	if parsed == nil {
		return nil, fmt.Errorf("parsing module: %w", Problems{{File: file, Row: 1, Col: 1, Code: ast.ParseErr, Message: "the file is empty"}})
	}
	if err := checkNumbers(parsed); err != nil {
		return nil, fmt.Errorf("parsing module: %w", err)
	}
	labelPackage(parsed)
	return parsed, nil
}

// checkNumbers refuses numbers that are slow to compare. OPA compares them also outside of built-in
// functions.
func checkNumbers(m *ast.Module) error {
	var wrong Problems
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if n, ok := t.Value.(ast.Number); ok {
			if err := bounded.CheckNumber(n); err != nil {
				wrong = append(wrong, ProblemAt(t.Location, "%v", err).WithCode(ast.ParseErr))
			}
		}
		return false
	})
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

// IsTest reports whether a file has tests, which are not part of the policy.
func IsTest(file string) bool { return strings.HasSuffix(file, "_test.rego") }

// Compile compiles modules together, strictly. OPA cannot stop a compilation that does not end, so callers must bound how long they wait.
func Compile(modules map[string]*ast.Module, opts ...Option) (*ast.Compiler, error) {
	all := maps.Clone(modules)
	if all == nil {
		all = map[string]*ast.Module{}
	}
	if err := addPackageLabels(all); err != nil {
		return nil, err
	}
	c := NewCompiler(opts...)
	release, err := lane.AcquireTurn(context.Background())
	if err != nil {
		return nil, fmt.Errorf("compiling modules: %w", err)
	}
	func() {
		defer release()
		c.Compile(all)
	}()
	if c.Failed() {
		return nil, fmt.Errorf("compiling modules: %w", FromErrors(c.Errors))
	}
	return c, nil
}

// lane is the lane of all compilations of the process.
var lane = NewLane()

// PrepareQuery prepares a query of compiled modules.
func PrepareQuery(ctx context.Context, r *rego.Rego) (rego.PreparedEvalQuery, error) {
	release, err := lane.AcquireTurn(ctx)
	if err != nil {
		return rego.PreparedEvalQuery{}, err
	}
	defer release()
	return r.PrepareForEval(ctx)
}

// NewCompiler returns a compiler with the settings of Compile, for OPA's test runner, which compiles
// itself.
func NewCompiler(opts ...Option) *ast.Compiler {
	cfg := config{}
	for _, o := range opts {
		o(&cfg)
	}
	capabilities := PolicyCapabilities()
	capabilities.Builtins = privateBuiltins(capabilities.Builtins)
	c := ast.NewCompiler().
		WithDefaultRegoVersion(ast.RegoV2).
		WithCapabilities(capabilities).
		WithStrict(true).
		WithEnablePrintStatements(cfg.print).
		// OPA turns == into unification, which recurses for each element of two equal arrays: arrays of some
		// millions of elements overflow the stack, and that ends the process. Without this stage == compares
		// in a loop.
		WithSkipStages(ast.StageRewriteEquals).
		WithStageAfterID(ast.StageBuildRequiredCapabilities, boundValues).
		SetErrorLimit(50)
	if cfg.schemas != nil {
		c = c.WithSchemas(cfg.schemas).WithUseTypeCheckAnnotations(true)
	}
	return c
}

// Option changes how modules are compiled.
type Option func(*config)

type config struct {
	schemas *ast.SchemaSet
	print   bool
}

// FromErrors converts OPA's errors to problems.
func FromErrors(err error) Problems { return problemsFromErrors("", err) }

// WithSchemas checks references to the input against schemas.
func WithSchemas(s *ast.SchemaSet) Option { return func(c *config) { c.schemas = s } }

// WithPrint keeps calls of print, which tests may use.
func WithPrint() Option { return func(c *config) { c.print = true } }

// Problem is an error in a policy, with its position.
type Problem struct {
	File string `json:"file"`
	Row  int    `json:"row"`
	Col  int    `json:"col"`
	// Code is OPA's code of the error, such as rego_type_error, or the engine's own if OPA has none. It
	// may be empty.
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

func (p Problem) String() string { return p.SourcePosition() + ": " + p.Message }

// FormatLine is file:row:col, code and message, for tools that distinguish problems by the code. OPA's
// messages begin with their code, which is not repeated.
func (p Problem) FormatLine() string {
	if p.Code == "" {
		return p.SourcePosition() + " " + p.Message
	}
	return p.SourcePosition() + " " + p.Code + " " + strings.TrimPrefix(p.Message, p.Code+": ")
}

// WithCode returns the problem with a code, unless it has one.
func (p Problem) WithCode(code string) Problem {
	p.Code = cmp.Or(p.Code, code)
	return p
}

// SourcePosition is file:row:col.
func (p Problem) SourcePosition() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Row, p.Col) }

// Problems are several problems, in the order of the files.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// WithCode returns the problems with a code, where they have none.
func (ps Problems) WithCode(code string) Problems {
	out := make(Problems, len(ps))
	for i, p := range ps {
		out[i] = p.WithCode(code)
	}
	return out
}

// ProblemAt makes a problem at a position in a module.
func ProblemAt(loc *ast.Location, format string, args ...any) Problem {
	p := Problem{Message: sanitizeMessage(fmt.Sprintf(format, args...)), Row: 1, Col: 1}
	if loc != nil {
		p.File, p.Row, p.Col = loc.File, max(loc.Row, 1), max(loc.Col, 1)
	}
	return p
}

// problemsFromErrors converts OPA's errors to Problems; an error without a position is put at the
// beginning of the file.
func problemsFromErrors(file string, err error) Problems {
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		return Problems{{File: file, Row: 1, Col: 1, Code: "rego_error", Message: err.Error()}}
	}
	out := make(Problems, 0, len(list))
	for _, e := range list {
		p := ProblemAt(e.Location, "%s: %s", e.Code, e.Message).WithCode(e.Code)
		if p.File == "" {
			p.File = file
		}
		if e.Details != nil {
			for _, line := range e.Details.Lines() {
				// Some lines of the details repeat the reference, with marks below it.
				if line = strings.TrimSpace(line); strings.Trim(line, "^") != "" && !strings.Contains(p.Message, line) {
					p.Message += "; " + line
				}
			}
		}
		if function, ok := strings.CutPrefix(e.Message, "undefined function "); ok {
			if why := forbiddenReason(function); why != "" {
				p.Message += "; " + why
			}
		}
		p.Message = sanitizeMessage(p.Message)
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Row - b.Row
	})
	return out
}

// maxMessage is how many characters of a message are kept: OPA quotes the wrong line, which may be a
// whole file.
const maxMessage = 500

// sanitizeMessage shortens a message, and removes control characters that could affect a terminal:
// quoted text may have any characters.
func sanitizeMessage(message string) string {
	var out strings.Builder
	n := 0
	for _, r := range message {
		if n++; n > maxMessage {
			out.WriteString("...")
			break
		}
		if r == utf8.RuneError || r != '\t' && r != '\n' && !unicode.IsPrint(r) {
			fmt.Fprintf(&out, "\\u%04x", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
