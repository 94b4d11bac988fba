// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/regatta-sh/regatta/engine/decision"
)

// joinLines is a comment in one line.
func joinLines(comment string) string { return strings.Join(strings.Fields(comment), " ") }

// readComments has what the comment of each function of the contract says, by package and
// function. That of a point tells what it decides, who asks it when, and what happens
// without an answer.
func readComments(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.go"))
	if err != nil {
		return nil, fmt.Errorf("finding the contract: %w", err)
	}
	out := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the contract: %w", err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				out[parsed.Name.Name+"."+f.Name.Name] = joinLines(strings.TrimPrefix(f.Doc.Text(), f.Name.Name+" "))
			}
		}
	}
	return out, nil
}

// pointFunction is the one that makes a point: rollout.PlanPoint of rollout/plan.
func pointFunction(point decision.Name) string {
	domain, name, _ := strings.Cut(string(point), "/")
	return domain + "." + strings.ToUpper(name[:1]) + name[1:] + "Point"
}
