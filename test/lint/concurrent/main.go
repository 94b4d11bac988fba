// SPDX-License-Identifier: Apache-2.0

// Concurrent lists the packages below the current folder that the race detector can find something in: those that start
// goroutines, or use locks, channels, servers or engines that do, in their code or in their tests. make test-unit runs the
// others without it.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/regatta-sh/regatta"

// concurrentImports are packages whose users have goroutines of their own or of these packages.
var concurrentImports = []string{
	"sync", "sync/atomic", "os/signal", "net/http", "net/http/httptest", "golang.org/x/sync/errgroup", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight",
	"k8s.io/client-go/util/workqueue", "k8s.io/client-go/informers", "k8s.io/client-go/tools/cache",
	"sigs.k8s.io/controller-runtime", "sigs.k8s.io/controller-runtime/pkg/manager",
	module + "/engine", module + "/test/apiserver", module + "/test/fakeclient",
	module + "/controllers/reconcile", module + "/controllers/simulation", module + "/controllers/policyhost", module + "/controllers/policyhost/hosttest",
}

func main() {
	if err := listPackages(".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "concurrent:", err)
		os.Exit(1)
	}
}

// listPackages prints the import paths of the concurrent packages of the module in a folder, sorted.
func listPackages(root string, out io.Writer) error {
	concurrent := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(root, path, d.Name())
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		if filepath.Ext(path) != ".go" || concurrent[folder] {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if isConcurrent(file) {
			concurrent[folder] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading packages: %w", err)
	}
	var paths []string
	for folder := range concurrent {
		inside, err := filepath.Rel(root, filepath.FromSlash(folder))
		if err != nil {
			return fmt.Errorf("naming a package: %w", err)
		}
		paths = append(paths, strings.TrimSuffix(module+"/"+filepath.ToSlash(inside), "/."))
	}
	slices.Sort(paths)
	for _, path := range paths {
		if _, err := fmt.Fprintln(out, path); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// skipFolder leaves out what is no package of the module: hidden folders, test data and other modules.
func skipFolder(root, path, name string) error {
	if path == root {
		return nil
	}
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// isConcurrent reports whether a file starts goroutines, has channels, runs tests in parallel, or imports a package that does.
func isConcurrent(file *ast.File) bool {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || slices.Contains(concurrentImports, path) {
			return true
		}
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Parallel"
		}
		return !found
	})
	return found
}
