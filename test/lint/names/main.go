// SPDX-License-Identifier: Apache-2.0

// Names fails where a function of the product has a name of one word, such as add
// or step, that a reader can neither search for nor guess. It is run in the root of
// the repository. kept.txt lists the functions whose package or type says the rest.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// keptFile lists functions of one word: a folder, a space and a name in each line.
const keptFile = "test/lint/names/kept.txt"

// conventional are names that the standard library, controller-runtime or the
// generators of Kubernetes ask for.
var conventional = wordSet(`String Error Unwrap Is As Len Less Swap Close Read Write Start Reconcile Handle Default
	Get List Create Update Patch Delete Watch Apply Status Name Kind Key Namespace ServeHTTP Describe Collect Push Pop
	Hub V Info Enabled New main init len key name`)

var (
	// generated is what the go command takes a generated file by.
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	words     = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)
)

// function is a function, or a method of a type or an interface, of one word.
type function struct {
	folder, name string
	position     token.Position
}

func main() {
	write := flag.Bool("write", false, "write "+keptFile+" anew, with all functions of one word that there are")
	flag.Parse()
	if err := run(".", *write, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

// run prints the functions of one word that the list does not have, and the lines of
// the list without a function. It fails if there are any.
func run(root string, write bool, out io.Writer) error {
	functions, err := findOneWordFunctions(root)
	if err != nil {
		return err
	}
	if write {
		return writeKept(filepath.Join(root, keptFile), functions)
	}
	kept, err := readKept(filepath.Join(root, keptFile))
	if err != nil {
		return err
	}
	faults, used := 0, map[string]bool{}
	for _, f := range functions {
		line := f.folder + " " + f.name
		used[line] = true
		if kept[line] {
			continue
		}
		faults++
		fmt.Fprintf(out, "%s: the name %s is one word: name verb and object (rankCandidates), or the question that the function answers (isConverged)\n", f.position, f.name)
	}
	for _, line := range slices.Sorted(maps.Keys(kept)) {
		if !used[line] {
			faults++
			fmt.Fprintf(out, "%s: remove the line %q: there is no such function\n", keptFile, line)
		}
	}
	if faults > 0 {
		return fmt.Errorf("%d names to mend", faults)
	}
	return nil
}

// findOneWordFunctions parses the Go files of the product: no tests, no test
// equipment, nothing generated.
func findOneWordFunctions(root string) ([]function, error) {
	var functions []function
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("naming file: %w", err)
		}
		if d.IsDir() {
			if rel == "test" || d.Name() == "testdata" || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading file: %w", err)
		}
		if generated.Match(text) {
			return nil
		}
		found, err := oneWordFunctions(filepath.ToSlash(rel), text)
		functions = append(functions, found...)
		return err
	})
	return functions, err
}

// oneWordFunctions returns the functions and methods of one file that have a name of
// one word which no interface of the field asks for.
func oneWordFunctions(path string, text []byte) ([]function, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing file: %w", err)
	}
	folder := filepath.ToSlash(filepath.Dir(path))
	var functions []function
	ast.Inspect(file, func(n ast.Node) bool {
		var names []*ast.Ident
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = []*ast.Ident{n.Name}
		case *ast.InterfaceType:
			for _, method := range n.Methods.List {
				names = append(names, method.Names...)
			}
		}
		for _, name := range names {
			if name.Name != "_" && len(words.FindAllString(name.Name, -1)) < 2 && !conventional[name.Name] {
				functions = append(functions, function{folder, name.Name, files.Position(name.Pos())})
			}
		}
		return true
	})
	return functions, nil
}

// readKept returns the lines of the list without comments.
func readKept(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading list: %w", err)
	}
	defer file.Close()
	kept := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			kept[line] = true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading list: %w", err)
	}
	return kept, nil
}

// writeKept writes the list, sorted, with a comment that says what belongs there.
func writeKept(path string, functions []function) error {
	lines := map[string]bool{}
	for _, f := range functions {
		lines[f.folder+" "+f.name] = true
	}
	text := "# Functions with a name of one word, of which the package or the type says the rest:\n" +
		"# module.Parse, slots.Acquire. A new function has a name of two words or more.\n" +
		strings.Join(slices.Sorted(maps.Keys(lines)), "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing list: %w", err)
	}
	return nil
}

// wordSet returns the words of a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}
