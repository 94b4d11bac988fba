// SPDX-License-Identifier: Apache-2.0

package module

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// LabelID is the label that names a rule in records and explanations.
const LabelID = "id"

// addPackageLabels ensures that every rule has an id: rules without one get the path of their package.
// OPA only records rules that have a label, and an annotation cannot be attached to a parsed package,
// so a module with only the annotation is compiled too.
//
// Packages below data.lib are left out, since shared helpers are not shown in explanations.
func addPackageLabels(modules map[string]*ast.Module) error {
	scoped := map[string]bool{}
	for _, m := range modules {
		if path := PackagePath(m); needsLabel(path) {
			scoped[path] = scoped[path] || packageScope(m) != nil
		}
	}
	for path, has := range scoped {
		if has {
			continue
		}
		file := "label:" + path
		m, err := Parse(file, fmt.Sprintf("# METADATA\n# scope: package\n# labels:\n#   id: %q\npackage %s\n", path, path))
		if err != nil {
			return fmt.Errorf("labelling package %s: %w", path, err)
		}
		modules[file] = m
	}
	return nil
}

// labelPackage gives the package's own annotation an id if it has none. It changes the module, so only
// Parse, which made it, may call it.
func labelPackage(m *ast.Module) {
	a, path := packageScope(m), PackagePath(m)
	if a == nil || !needsLabel(path) {
		return
	}
	if a.Labels == nil {
		a.Labels = map[string]any{}
	}
	if _, ok := a.Labels[LabelID]; !ok {
		a.Labels[LabelID] = path
	}
}

func needsLabel(path string) bool {
	return path != "" && path != "lib" && !strings.HasPrefix(path, "lib.")
}

func packageScope(m *ast.Module) *ast.Annotations {
	for _, a := range m.Annotations {
		if a.Scope == "package" {
			return a
		}
	}
	return nil
}

// PackagePath is the package of a module as in its source, without "data".
func PackagePath(m *ast.Module) string {
	if m.Package == nil || len(m.Package.Path) < 2 {
		return ""
	}
	return strings.TrimPrefix(m.Package.Path.String(), "data.")
}
