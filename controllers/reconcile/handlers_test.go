// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutReads are the functions that handler.EnqueueRequestsFromMapFunc may be given: they read nothing, which the test checks.
func withoutReads() []string {
	return []string{"ownerOf", "ownerRequests"}
}

// An event handler that cannot read which objects an event concerns must not lose the event: it hands the error to MissedEvents. The test
// reads the source of all controllers.
func TestEachHandlerThatCannotReadIsMadeUpFor(t *testing.T) {
	handlers, mapped := 0, map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found, complaints := checkHandlers(file)
		handlers += found
		for _, c := range complaints {
			t.Errorf("%s: %s", path, c)
		}
		for _, name := range mappedFunctions(file) {
			mapped[name] = true
			if !slices.Contains(withoutReads(), name) {
				t.Errorf("%s: handler.EnqueueRequestsFromMapFunc is given %s, and loses the event if that cannot read: give MissedEvents.EnqueueFound a function that returns the error", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if handlers < 30 {
		t.Errorf("only %d functions with a queue are found", handlers)
	}
	for _, name := range withoutReads() {
		if !mapped[name] {
			t.Errorf("no handler has function %s", name)
		}
	}
}

func TestHandlersThatLoseEventsAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   int
	}{
		"an error that is logged": {`func (r *R) enqueue(ctx context.Context, q queue) {
			if err := r.Client.List(ctx, list); err != nil { log.Error(err, "Listing"); return }
		}`, 1},
		"an error that is left out": {`func enqueue(ctx context.Context, q reconcile.Queue) { _ = c.Get(ctx, key, o) }`, 1},
		"an error of a literal": {`var h = handler.Funcs{CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			found, err := find(ctx, e.Object); if err != nil { return }
		}}`, 1},
		"requests without their error":                {`func ofPod(ctx context.Context, o client.Object) []reconcile.Request { if err := c.Get(ctx, key, o); err != nil { return nil }; return nil }`, 1},
		"references without their error":              {`func ofPod(ctx context.Context) (out []Reference) { _ = c.List(ctx, list); return out }`, 1},
		"requests beside an error":                    {`func ofPod(ctx context.Context) ([]reconcile.Request, error) { return nil, c.List(ctx, list) }`, 0},
		"an error that is made up for":                {`func enqueue(ctx context.Context, q queue) { if err := c.List(ctx, list); err != nil { m.EnqueueAllLater(ctx, q, err) } }`, 0},
		"an error in place of which all are enqueued": {`func enqueue(ctx context.Context, q queue) { if err := c.List(ctx, list); err != nil { h.enqueueAll(ctx, q) } }`, 0},
		"no error": {`func enqueue(ctx context.Context, q queue) { q.Add(r) }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+tc.source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := checkHandlers(file); len(got) != tc.want {
				t.Errorf("complaints are %q, want %d", got, tc.want)
			}
		})
	}
}

// checkHandlers counts the functions of a file that have a queue, and returns those that lose events: they can fail to read, and neither
// return the error nor enqueue something in its place.
func checkHandlers(file *ast.File) (handlers int, complaints []string) {
	inspect := func(name string, of *ast.FuncType, body *ast.BlockStmt) {
		if body == nil {
			return
		}
		withQueue, reads := hasQueue(of), canFail(body)
		if withQueue {
			handlers++
		}
		switch {
		case !reads || returnsError(of):
		case withQueue && !calls(body, "EnqueueAllLater", "enqueueAll") && !addsInErrorCase(body):
			complaints = append(complaints, fmt.Sprintf("%s cannot read, and loses the event: call MissedEvents.EnqueueAllLater", name))
		case !withQueue && returnsRequests(of):
			complaints = append(complaints, fmt.Sprintf("%s cannot read, and returns no error: MissedEvents needs it", name))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			inspect(n.Name.Name, n.Type, n.Body)
		case *ast.FuncLit:
			inspect("a function literal", n.Type, n.Body)
		}
		return true
	})
	return handlers, complaints
}

// hasQueue reports whether a function has a parameter that is the queue of a controller.
func hasQueue(of *ast.FuncType) bool {
	return slices.ContainsFunc(of.Params.List, func(p *ast.Field) bool {
		name := typeName(p.Type)
		return name == "queue" || name == "Queue" || name == "TypedRateLimitingInterface"
	})
}

// returnsError reports whether a function returns an error.
func returnsError(of *ast.FuncType) bool {
	return of.Results != nil && slices.ContainsFunc(of.Results.List, func(p *ast.Field) bool { return typeName(p.Type) == "error" })
}

// returnsRequests reports whether a function returns a list of requests, or of references to workloads.
func returnsRequests(of *ast.FuncType) bool {
	return of.Results != nil && slices.ContainsFunc(of.Results.List, func(p *ast.Field) bool {
		list, ok := p.Type.(*ast.ArrayType)
		return ok && slices.Contains([]string{"Request", "Reference", "NamespacedName"}, typeName(list.Elt))
	})
}

// typeName is the name of a type without its package and without its arguments.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.IndexExpr:
		return typeName(of.X)
	}
	return ""
}

// canFail reports whether a function reads objects, or has an error of another function.
func canFail(body *ast.BlockStmt) bool {
	return calls(body, "List", "Get") || containsNode(body, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		return ok && slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool { return typeName(e) == "err" })
	})
}

// addsInErrorCase reports whether a function adds an object to the queue in the case that there is an error.
func addsInErrorCase(body *ast.BlockStmt) bool {
	return containsNode(body, func(n ast.Node) bool {
		c, ok := n.(*ast.CaseClause)
		return ok && slices.ContainsFunc(c.List, isErrorCondition) && containsNode(c, func(n ast.Node) bool { return isCallOf(n, "Add") })
	})
}

// isErrorCondition reports whether an expression is err != nil.
func isErrorCondition(e ast.Expr) bool {
	compare, ok := e.(*ast.BinaryExpr)
	return ok && compare.Op == token.NEQ && typeName(compare.X) == "err"
}

// calls reports whether a function calls one with one of the names, itself and not in a function literal.
func calls(body *ast.BlockStmt, names ...string) bool {
	return containsNode(body, func(n ast.Node) bool { return isCallOf(n, names...) })
}

func isCallOf(n ast.Node, names ...string) bool {
	call, ok := n.(*ast.CallExpr)
	return ok && slices.Contains(names, typeName(call.Fun))
}

// containsNode reports whether a node, without its function literals, has one that is wanted.
func containsNode(in ast.Node, wanted func(ast.Node) bool) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		if _, literal := n.(*ast.FuncLit); literal || found || n == nil {
			return false
		}
		found = wanted(n)
		return !found
	})
	return found
}

// mappedFunctions are the functions that a file gives handler.EnqueueRequestsFromMapFunc.
func mappedFunctions(file *ast.File) (out []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if !isCallOf(n, "EnqueueRequestsFromMapFunc") {
			return true
		}
		name := "a function literal"
		switch of := n.(*ast.CallExpr).Args[0].(type) {
		case *ast.FuncLit:
			if !canFail(of.Body) {
				return true
			}
		case *ast.CallExpr:
			name = typeName(of.Fun)
		default:
			name = typeName(of)
		}
		out = append(out, name)
		return true
	})
	return out
}
