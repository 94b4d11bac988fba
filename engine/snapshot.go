// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
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

// Snapshot is one revision of all policies, compiled. It never changes, so
// decisions that are under way when another becomes active end as they began.
type Snapshot struct {
	revision string
	set      bundle.Set
	cluster  *view
	// views has the namespaces with bundles of their own or with canaries. Such
	// a bundle can only hold in its namespace because it exists nowhere else.
	views map[string]*view
}

// view is what decides in the namespaces that have the same bundles.
type view struct {
	revision string
	// tenant is the namespace whose own bundles are in it; empty if none are.
	tenant   string
	bundles  []string
	compiler *ast.Compiler
	store    storage.Store
	txn      storage.Transaction
	rules    map[string]*Rule
	mu       sync.RWMutex
	queries  map[decision.Name]*query
}

// query is a prepared entrypoint; the zero value is one that no policy defines.
type query struct {
	prepared rego.PreparedEvalQuery
	txn      storage.Transaction
	tenant   string // as in the view
	path     string // of the package, e.g. rollout or override.rollout
	defined  bool
	extended bool // rules of users take part in the answer
}

// compile makes a snapshot of the built-in bundle and a set of others. What is
// the same in other snapshots is taken from there: one namespace's change does
// not compile for all the others again.
func compile(ctx context.Context, builtin *bundle.Bundle, set bundle.Set, points []decision.Name, from []*Snapshot) (*Snapshot, error) {
	if err := append(bundle.Set{builtin}, set...).Conflicts(); err != nil {
		return nil, err
	}
	s := &Snapshot{revision: append(bundle.Set{builtin}, set...).Revision(), set: set, views: map[string]*view{}}
	known := map[string]*view{}
	for _, other := range from {
		maps.Copy(known, other.compiled())
	}
	view := func(namespace string) (*view, error) {
		part := append(bundle.Set{builtin}, set.For(namespace)...)
		content := part.Content()
		if v, ok := known[content]; ok {
			return v, nil
		}
		v, err := newView(ctx, part)
		known[content] = v
		return v, err
	}
	var err error
	if s.cluster, err = view(""); err != nil {
		return nil, err
	}
	for _, ns := range set.Namespaces() {
		if s.views[ns], err = view(ns); err != nil {
			return nil, fmt.Errorf("compiling for namespace %s: %w", ns, err)
		}
	}
	for _, p := range points {
		if _, err := s.cluster.query(ctx, p); err != nil {
			return nil, err
		}
		for ns, v := range s.views {
			if _, err := v.query(ctx, p); err != nil {
				return nil, fmt.Errorf("preparing for namespace %s: %w", ns, err)
			}
		}
	}
	return s, nil
}

// compiled are the views of a snapshot, which may be nil, by their revisions.
func (s *Snapshot) compiled() map[string]*view {
	out := map[string]*view{}
	if s != nil {
		out[s.cluster.revision] = s.cluster
		for _, v := range s.views {
			out[v.revision] = v
		}
	}
	return out
}

func newView(ctx context.Context, all bundle.Set) (*view, error) {
	modules := map[string]*ast.Module{}
	data := map[string]any{}
	tenant := ""
	for _, b := range all {
		if b.Kind == bundle.Tenant {
			tenant = b.Namespace
		}
		for file, m := range b.Modules {
			modules[moduleKey(b, file)] = m
		}
		if err := merge(data, b.Data); err != nil {
			return nil, fmt.Errorf("merging the data of bundle %s: %w", b.Name, err)
		}
	}
	compiler, err := module.Compile(modules)
	if err != nil {
		return nil, err
	}
	// Terms are made once here and not at every read of a decision.
	store := inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))
	// Nothing is ever written, so one transaction serves all decisions.
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the data: %w", err)
	}
	return &view{
		revision: all.Content(), tenant: tenant, bundles: all.IDs(), compiler: compiler, store: store, txn: txn,
		rules: rulesOf(all, compiler), queries: map[decision.Name]*query{},
	}, nil
}

// moduleKey keeps files of one name apart that different bundles have.
func moduleKey(b *bundle.Bundle, file string) string { return b.ID() + "/" + file }

func merge(into, from map[string]any) error {
	for k, v := range from {
		old, ok := into[k]
		if !ok {
			if m, isMap := v.(map[string]any); isMap {
				fresh := map[string]any{} // bundles keep their own maps
				into[k] = fresh
				if err := merge(fresh, m); err != nil {
					return err
				}
				continue
			}
			into[k] = v
			continue
		}
		a, okA := old.(map[string]any)
		b, okB := v.(map[string]any)
		if !okA || !okB {
			return fmt.Errorf("%q is there already", k)
		}
		if err := merge(a, b); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}

// view is what decides about a subject.
func (s *Snapshot) view(subject decision.Subject) *view {
	if v, ok := s.views[subject.Namespace]; ok {
		return v
	}
	return s.cluster
}

// Revision names the snapshot.
func (s *Snapshot) Revision() string { return s.revision }

// RevisionFor names what decides about a subject: it does not change when only
// another namespace's bundles do, nor when a canary is promoted. Records carry it.
func (s *Snapshot) RevisionFor(subject decision.Subject) string { return s.view(subject).revision }

// BundlesFor are what decides about a subject, as name@revision, the built-in policies among
// them. Records carry them.
func (s *Snapshot) BundlesFor(subject decision.Subject) []string { return s.view(subject).bundles }

// Bundles are the users' bundles in the snapshot.
func (s *Snapshot) Bundles() bundle.Set { return s.set }

// Defines says whether some policy answers the point for the subject.
func (s *Snapshot) Defines(name decision.Name, subject decision.Subject) bool {
	q, err := s.view(subject).query(context.Background(), name)
	return err == nil && q.defined
}

// Extended says whether rules of users take part in the answers of a point to a
// subject. Where that cannot be said, they count as if they did.
func (s *Snapshot) Extended(name decision.Name, subject decision.Subject) bool {
	q, err := s.view(subject).query(context.Background(), name)
	return err != nil || q.extended
}

// Replaced says whether a bundle of users answers a point itself for a subject, in place of the built-in policies.
func (s *Snapshot) Replaced(name decision.Name, subject decision.Subject) bool {
	path, _, _ := s.view(subject).entry(name)
	return strings.HasPrefix(path, "override.")
}

// query prepares an entrypoint once. Those of the contract are prepared before
// the snapshot becomes active; a library's own are when they are first asked.
func (v *view) query(ctx context.Context, name decision.Name) (*query, error) {
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
	q, err := v.prepare(ctx, name)
	if err == nil {
		v.queries[name] = q
	}
	return q, err
}

// entry is what answers a point: a rule of a package, by its path, and the
// definitions of it. There are none if no policy answers it.
func (v *view) entry(name decision.Name) (pkg string, ref ast.Ref, rules []*ast.Rule) {
	domain, point, _ := cutName(name)
	ref = ast.DefaultRootRef.Concat([]*ast.Term{ast.StringTerm("override"), ast.StringTerm(domain), ast.StringTerm(point)})
	if rules = v.compiler.GetRules(ref); len(rules) > 0 {
		return "override." + domain, ref, rules
	}
	ref = ast.DefaultRootRef.Concat(ref[2:])
	return domain, ref, v.compiler.GetRules(ref)
}

// reach are the rules that may take part in the answer of a point: those that answer
// it, and all that they refer to.
func (v *view) reach(name decision.Name) map[*ast.Rule]bool {
	_, _, next := v.entry(name)
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

// extended says whether one of the rules that may take part in the answer of a point
// is in a package of users.
func (v *view) extended(name decision.Name) bool {
	for r := range v.reach(name) {
		if r.Module == nil || len(r.Module.Package.Path) < 2 {
			continue
		}
		if root, ok := r.Module.Package.Path[1].Value.(ast.String); ok && (root == "extend" || root == "override") {
			return true
		}
	}
	return false
}

func (v *view) prepare(ctx context.Context, name decision.Name) (*query, error) {
	if _, _, ok := cutName(name); !ok {
		return nil, fmt.Errorf("preparing %s: a decision point is named domain/point", name)
	}
	pkg, ref, rules := v.entry(name)
	q := &query{path: pkg, txn: v.txn, tenant: v.tenant, extended: v.extended(name)}
	if len(rules) == 0 {
		return q, nil
	}
	prepared, err := module.Prepare(ctx, rego.New(
		rego.ParsedQuery(ast.NewBody(ast.NewExpr(ast.NewTerm(ref)))),
		rego.Compiler(v.compiler),
		rego.Store(v.store),
		rego.Transaction(v.txn),
		// A rule that asks a built-in something silly has no answer; taking it
		// for undefined would let a hold or a deny fail open.
		rego.StrictBuiltinErrors(true),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
	))
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	q.prepared, q.defined = prepared, true
	return q, nil
}
