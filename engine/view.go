// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// compiledView has bundles that are compiled together: all bundles of the platform that decide in some namespaces,
// or the bundles of one namespace with the part of the platform's bundles that refers to them.
type compiledView struct {
	revision string
	// tenant is the namespace whose own bundles are in it; empty if none are.
	tenant string
	// withheld are the bundles in it that may not decide.
	withheld bundle.Set
	compiler *ast.Compiler
	// data is the merged data of all bundles; views of namespaces share the platform's data.
	data    ast.Object
	store   storage.Store
	txn     storage.Transaction
	rules   map[string]*Rule
	mu      sync.RWMutex
	queries map[decision.Name]*query
	// modules and sizes have the platform's modules and the lengths of their sources, for views that include some of
	// them.
	modules map[string]*ast.Module
	sizes   map[string]int
	// references is computed when a namespace has bundles of its own.
	references func() *references
	// bytes is an estimate of the memory of a view of a namespace.
	bytes int
}

// query is a prepared entrypoint; the zero value means that no policy defines it.
type query struct {
	view     *compiledView
	prepared rego.PreparedEvalQuery
	txn      storage.Transaction
	tenant   string // as in the view
	path     string // of the package, e.g. rollout or override.rollout
	defined  bool
	extended bool // rules of users take part in the answer
	// withheld are the bundles that take part in the answer and may not decide, as
	// name@revision.
	withheld []string
}

// newView compiles all modules of the platform's bundles, the built-in ones among them.
func newView(ctx context.Context, all bundle.Set) (*compiledView, error) {
	modules, sizes := map[string]*ast.Module{}, map[string]int{}
	data := ast.NewObject()
	for _, b := range all {
		for file, m := range b.Modules {
			modules[moduleKey(b, file)], sizes[moduleKey(b, file)] = m, len(b.Files[file])
		}
		var err error
		if data, err = addData(data, b); err != nil {
			return nil, err
		}
	}
	v, err := compileView(ctx, all.ContentHash(), modules, data)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		if b.Kind == bundle.Tenant {
			v.tenant = b.Namespace
		}
	}
	v.rules, v.modules, v.sizes, v.withheld = rulesOf(all, v.compiler), modules, sizes, all.WithheldBundles()
	return v, nil
}

// newPreparedView is newView, with the entrypoints of some points prepared.
func newPreparedView(ctx context.Context, all bundle.Set, points []decision.Name) (*compiledView, error) {
	v, err := newView(ctx, all)
	if err != nil {
		return nil, err
	}
	return v, v.prepareQueries(ctx, points)
}

// prepareQueries prepares the entrypoints of points that are not prepared yet.
func (v *compiledView) prepareQueries(ctx context.Context, points []decision.Name) error {
	for _, p := range points {
		if _, err := v.preparedQuery(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func compileView(ctx context.Context, revision string, modules map[string]*ast.Module, data ast.Object) (*compiledView, error) {
	compiler, err := module.Compile(modules)
	if err != nil {
		return nil, err
	}
	// Terms are made once here and not at every read of a decision.
	store := inmem.NewFromASTObject(data)
	// Nothing is ever written, so one transaction serves all decisions.
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the data: %w", err)
	}
	v := &compiledView{revision: revision, compiler: compiler, data: data, store: store, txn: txn, queries: map[decision.Name]*query{}}
	v.references = sync.OnceValue(func() *references { return referencesOf(v.compiler) })
	return v, nil
}

// moduleKey distinguishes files with the same name in different bundles.
func moduleKey(b *bundle.Bundle, file string) string { return b.ID() + "/" + file }

// addData returns data merged with that of a bundle. Parts that only one has are shared, not copied.
func addData(data ast.Object, b *bundle.Bundle) (ast.Object, error) {
	if len(b.Data) == 0 {
		return data, nil
	}
	own, err := ast.InterfaceToValue(b.Data)
	if err != nil {
		return nil, fmt.Errorf("reading the data of bundle %s: %w", b.Name, err)
	}
	merged, err := mergeObjects(data, own.(ast.Object))
	if err != nil {
		return nil, fmt.Errorf("merging the data of bundle %s: %w", b.Name, err)
	}
	return merged, nil
}

func mergeObjects(a, b ast.Object) (ast.Object, error) {
	var failed error
	merged, ok := a.MergeWith(b, func(x, y *ast.Term) (*ast.Term, bool) {
		below, okX := x.Value.(ast.Object)
		more, okY := y.Value.(ast.Object)
		if !okX || !okY {
			failed = errors.New("is there already")
			return nil, true
		}
		both, err := mergeObjects(below, more)
		if err != nil {
			failed = err
			return nil, true
		}
		return ast.NewTerm(both), false
	})
	if !ok {
		return nil, failed
	}
	return merged, nil
}

// preparedQuery prepares an entrypoint once. Points of the contract are prepared before the snapshot
// becomes active, other points at their first use.
func (v *compiledView) preparedQuery(ctx context.Context, name decision.Name) (*query, error) {
	v.mu.RLock()
	q, ok := v.queries[name]
	v.mu.RUnlock()
	if ok {
		return q, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if q, ok := v.queries[name]; ok {
		return q, nil
	}
	q, err := v.prepareQuery(ctx, name)
	if err == nil {
		v.queries[name] = q
	}
	return q, err
}

// findEntrypoint returns the rule that answers a point: its package, its path, and its definitions.
// There are none if no policy answers it.
func (v *compiledView) findEntrypoint(name decision.Name) (pkg string, ref ast.Ref, rules []*ast.Rule) {
	override, plain := entryRefs(name)
	if rules = v.compiler.GetRules(override); len(rules) > 0 {
		return "override." + name.Domain(), override, rules
	}
	return name.Domain(), plain, v.compiler.GetRules(plain)
}

// entryRefs returns the paths of the rules that answer a point: that of a replacement, and that of the built-in
// policies.
func entryRefs(name decision.Name) (override, plain ast.Ref) {
	domain, point, _ := cutName(name)
	override = ast.DefaultRootRef.Concat([]*ast.Term{ast.StringTerm("override"), ast.StringTerm(domain), ast.StringTerm(point)})
	return override, ast.DefaultRootRef.Concat(override[2:])
}

// isPointReplaced reports whether a bundle of users answers a point itself.
func (v *compiledView) isPointReplaced(name decision.Name) bool {
	path, _, _ := v.findEntrypoint(name)
	return strings.HasPrefix(path, "override.")
}

// reachableRules returns the rules that may take part in the answer of a point: those that answer it,
// and all rules that they refer to.
func (v *compiledView) reachableRules(name decision.Name) map[*ast.Rule]bool {
	_, _, next := v.findEntrypoint(name)
	seen := map[*ast.Rule]bool{}
	for len(next) > 0 {
		r := next[len(next)-1]
		if next = next[:len(next)-1]; r == nil || seen[r] {
			continue
		}
		seen[r] = true
		next = append(next, r.Else)
		for dep := range v.compiler.Graph.Dependencies(r) {
			if used, ok := dep.(*ast.Rule); ok {
				next = append(next, used)
			}
		}
	}
	return seen
}

// isPointExtended reports whether one of the rules that may take part in the answer of a point
// is in a package of users.
func (v *compiledView) isPointExtended(name decision.Name) bool {
	for r := range v.reachableRules(name) {
		if r.Module == nil || len(r.Module.Package.Path) < 2 {
			continue
		}
		if root, ok := r.Module.Package.Path[1].Value.(ast.String); ok && (root == "extend" || root == "override") {
			return true
		}
	}
	return false
}

func (v *compiledView) prepareQuery(ctx context.Context, name decision.Name) (*query, error) {
	if _, _, ok := cutName(name); !ok {
		return nil, fmt.Errorf("preparing %s: a decision point is named domain/point", name)
	}
	pkg, ref, rules := v.findEntrypoint(name)
	q := &query{view: v, path: pkg, txn: v.txn, tenant: v.tenant, withheld: v.withheldFrom(name)}
	q.extended = len(q.withheld) > 0 || v.isPointExtended(name)
	if len(rules) == 0 {
		return q, nil
	}
	prepared, err := module.PrepareQuery(ctx, rego.New(
		rego.ParsedQuery(ast.NewBody(ast.NewExpr(ast.NewTerm(ref)))),
		rego.Compiler(v.compiler),
		rego.Store(v.store),
		rego.Transaction(v.txn),
		// An error of a built-in function must not make a rule undefined: a hold or a deny would fail open.
		rego.StrictBuiltinErrors(true),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
	))
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	q.prepared, q.defined = prepared, true
	return q, nil
}
