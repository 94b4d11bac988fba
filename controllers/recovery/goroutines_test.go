// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// exempt are goroutines that do not read what users of a cluster write: those of the command line, which ends
// with its own user's command, of a server for tests, and of the package in which goroutines begin.
var exempt = []string{"controllers/cmd/regatta/", "nodeagent/cri/critest/", "engine/recovery/", "controllers/recovery/", "controllers/simulation/"}

func TestGoroutinesBeginWhereAPanicIsRecovered(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := 0
	for _, folder := range []string{"controllers", "nodeagent", "engine"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, prefix := range exempt {
				if strings.HasPrefix(filepath.ToSlash(name), prefix) {
					return nil
				}
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			seen++
			for _, why := range unrecovered(file) {
				t.Errorf("%s: %s", files.Position(why.at), why.text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("saw %d files, want all product code", seen)
	}
}

func TestGoroutinesThatBeginElsewhereAreFound(t *testing.T) {
	for name, body := range map[string]string{
		"a go statement":                  "go f()",
		"an errgroup":                     "var g errgroup.Group; _ = g",
		"a WaitGroup that starts":         "var g sync.WaitGroup; g.Go(f)",
		"a cache of its own":              "cache.New(nil, cache.Options{})",
		"a mapping function of a channel": "source.Channel(c, handler.EnqueueRequestsFromMapFunc(all))",
		"a timer's function":              "time.AfterFunc(0, f)",
		"an option that ends recovery":    "_ = controller.Options{RecoverPanic: off}",
		"a runnable":                      "mgr.Add(r)",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc x() {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(unrecovered(file)) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}

type finding struct {
	at   token.Pos
	text string
}

func unrecovered(file *ast.File) (all []finding) {
	waits, starts := false, []ast.Node(nil)
	add := func(n ast.Node, text string) { all = append(all, finding{n.Pos(), text}) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "begins a goroutine: call recovery.Go or recovery.GoUntilDone")
		case *ast.SelectorExpr:
			switch qualified(n) {
			case "errgroup.Group", "errgroup.WithContext":
				add(n, "has an errgroup: make a recovery.Group")
			case "sync.WaitGroup":
				waits = true
			case "cache.New", "toolscache.NewSharedIndexInformer", "cache.NewSharedIndexInformer":
				add(n, "makes a cache: call NewCache of controllers/recovery")
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "RecoverPanic" {
				add(n, "sets RecoverPanic: the default is that panics are recovered")
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok {
				if f.Sel.Name == "Go" && !strings.HasPrefix(qualified(f), "recovery.") && len(n.Args) == 1 {
					starts = append(starts, n)
				}
				switch name := qualified(f); {
				case name == "time.AfterFunc" && !callsRecovery(n.Args[1]):
					add(n, "begins a goroutine: call recovery.Call in it")
				case name == "source.Channel":
					if inner, ok := n.Args[1].(*ast.CallExpr); ok && len(inner.Args) > 0 && !wrapped(inner.Args[0]) {
						add(n, "calls a mapping function in a goroutine of a channel: wrap it in Map of controllers/recovery")
					}
				case f.Sel.Name == "Add" && (name == "mgr.Add" || strings.HasSuffix(name, ".mgr.Add")) && !wrapped(n.Args[0]) && !isStartup(n.Args[0]):
					add(n, "adds a runnable: wrap it in Runnable of controllers/recovery")
				}
			}
		}
		return true
	})
	if waits { // one that only waits begins nothing
		for _, n := range starts {
			add(n, "begins a goroutine of a WaitGroup: make a recovery.WaitGroup")
		}
	}
	return all
}

// callsRecovery reports whether a function literal begins with recovery.Call.
func callsRecovery(e ast.Expr) bool {
	f, ok := e.(*ast.FuncLit)
	if !ok || len(f.Body.List) != 1 {
		return false
	}
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		found = found || ok && qualified(s) == "recovery.Call"
		return true
	})
	return found
}

// isStartup is true for what starts a process, which cannot be started twice.
func isStartup(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "s"
}

func wrapped(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(qualified(f), "crecovery.")
}

func qualified(e *ast.SelectorExpr) string {
	switch x := e.X.(type) {
	case *ast.Ident:
		return x.Name + "." + e.Sel.Name
	case *ast.SelectorExpr:
		return qualified(x) + "." + e.Sel.Name
	}
	return "?." + e.Sel.Name
}
