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

// sentence is a comment in one line.
func sentence(comment string) string { return strings.Join(strings.Fields(comment), " ") }

// asked has what the comment of each function of the contract says, by the name
// of the function. That of a point tells what it decides, who asks it when, and
// what happens without an answer.
func asked(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
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
				out[f.Name.Name] = sentence(strings.TrimPrefix(f.Doc.Text(), f.Name.Name+" "))
			}
		}
	}
	return out, nil
}

// function is the name of the one that makes a point: RolloutPlan of rollout/plan.
func function(point decision.Name) string {
	out := ""
	for _, part := range strings.Split(string(point), "/") {
		out += strings.ToUpper(part[:1]) + part[1:]
	}
	return out
}
