// SPDX-License-Identifier: Apache-2.0

package annotation_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// notFuzzed are readers without a fuzz test of their own package, and folders of them, by why they need none.
func notFuzzed() map[string]string {
	const commandLine = "the command line and its simulations: what is read is that of who runs it"
	return map[string]string{
		"controllers/cmd":                                     commandLine,
		"controllers/simulation":                              commandLine,
		"controllers/api/apitest":                             "part of tests",
		"controllers/policyhost":                              "the files of the process itself",
		"controllers/sidecarset/history.EncodeSpec":           "it reads what it has encoded",
		"controllers/uniteddeployment.encodeTemplate":         "it reads what it has encoded",
		"controllers/webhook/admit.decodeObject":              "the fuzz test of webhook/cloneset goes through it",
		"controllers/webhook/convert.ServeHTTP":               "the fuzz test is of what it reads objects with; the API server makes what is around them",
		"controllers/webhook/rules.Read":                      "a setting of the administrator, a ConfigMap beside the manager",
		"controllers/webhook/workloadspread.workloadTemplate": "a stored object of any kind; on one of another shape than ours no patch is tried",
		"controllers/webhookconfig.fieldsOf":                  "it reads what it has encoded",
		"controllers/webhookconfig.applyField":                "it reads what it has encoded, an object that the API server has checked",
		"controllers/gatedkinds.startsPulls":                  "its only pointer is compared with nil",
		"controllers/docs/metrics.ReadDashboards":             "it reads files of the chart",
		"nodeagent/credentials.runPlugin":                     "a plugin of the administrator prints it, and the length is bounded",
		"nodeagent/cri.processEnv":                            "the container runtime says it, and the length is bounded",
	}
}

// Each function that reads a text of users as JSON is reached by a fuzz test of its package, or needs none. Calls are followed by
// the names of functions alone, which finds some that are not made, and misses none.
func TestEachReaderOfATextHasAFuzzTest(t *testing.T) {
	const root = "../.."
	packages := map[string]bool{}
	for _, top := range []string{"controllers", "nodeagent"} {
		sources(t, filepath.Join(root, top), func(path, text string) {
			if strings.Contains(text, "/controllers/annotation\"") || strings.Contains(text, "json.Unmarshal(") {
				packages[filepath.Dir(path)] = true
			}
		})
	}
	found, needed := 0, map[string]bool{}
	for dir := range packages {
		short := filepath.ToSlash(strings.TrimPrefix(dir, root+"/"))
		mentions, readers := functionsOf(t, dir)
		reached := map[string]bool{}
		var reach func(name string)
		reach = func(name string) {
			if reached[name] {
				return
			}
			reached[name] = true
			for next := range mentions[name] {
				reach(next)
			}
		}
		for name := range mentions {
			if strings.HasPrefix(name, "Fuzz") {
				reach(name)
			}
		}
		for name := range readers {
			found++
			if reached[name] {
				continue
			}
			exempt := false
			for reader := range notFuzzed() {
				if reader == short+"."+name || reader == short || strings.HasPrefix(short, reader+"/") {
					exempt, needed[reader] = true, true
				}
			}
			if !exempt {
				t.Errorf("%s.%s reads a text of users, and no fuzz test calls it", short, name)
			}
		}
	}
	for reader, why := range notFuzzed() {
		if !needed[reader] {
			t.Errorf("%s is no reader without a fuzz test any more: %s", reader, why)
		}
	}
	if found < 50 {
		t.Errorf("%d readers are found: they are not found any more", found)
	}
}

// functionsOf are the functions of the files in a folder, with the names that each mentions, and those that read JSON.
func functionsOf(t *testing.T, dir string) (mentions map[string]map[string]bool, readers map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	mentions, readers = map[string]map[string]bool{}, map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.Name.Name
			if mentions[name] == nil {
				mentions[name] = map[string]bool{}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					mentions[name][id.Name] = true
				}
				return true
			})
			if (mentions[name]["Decode"] || mentions[name]["Unmarshal"]) && !strings.HasSuffix(path, "_test.go") {
				readers[name] = true
			}
		}
	}
	return mentions, readers
}
