// SPDX-License-Identifier: Apache-2.0

// Gen writes bundle.yaml of each example: a ClusterPolicyBundle of the files
// beside it, or a PolicyBundle where it is for a namespace, ready for kubectl
// apply.
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := "policies/examples"
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := generateBundles(root, os.WriteFile); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generateBundles hands the bundle of each example to write.
func generateBundles(root string, write func(name string, text []byte, mode os.FileMode) error) error {
	folders, err := filepath.Glob(filepath.Join(root, "*", "*_test.rego"))
	if err != nil {
		return fmt.Errorf("finding examples: %w", err)
	}
	done := map[string]bool{}
	for _, test := range folders {
		folder := filepath.Dir(test)
		if done[folder] {
			continue
		}
		done[folder] = true
		text, err := renderBundle(folder)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(folder, "bundle.yaml"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing bundle: %w", err)
		}
	}
	if len(done) == 0 {
		return fmt.Errorf("there are no examples in %s", root)
	}
	return nil
}

// tenantNamespaces are the examples that are for a namespace, and which one.
func tenantNamespaces() map[string]string { return map[string]string{"team-guard-rails": "shop"} }

// readExampleFiles are those of an example by their paths in the bundle. Data stands where
// its package finds it, and policies in a folder of their own, so that those of
// several examples can be put together.
func readExampleFiles(folder string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case strings.HasPrefix(name, "extend/"):
		case filepath.Ext(name) == ".rego":
			name = filepath.Base(folder) + "/" + name
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading example: %w", err)
	}
	return out, nil
}

// renderBundle writes the YAML by hand: a library would quote text that has tabs,
// which is hard to read.
func renderBundle(folder string) (string, error) {
	text, err := readExampleFiles(folder)
	if err != nil {
		return "", err
	}
	name := filepath.Base(folder)
	kind, where := "ClusterPolicyBundle", ""
	if ns, ok := tenantNamespaces()[name]; ok {
		kind, where = "PolicyBundle", "\n  namespace: "+ns
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# Made by "make generate" from the files beside it: edit those.
apiVersion: policy.kruise.io/v1alpha1
kind: %s
metadata:
  name: %s%s
spec:
  files:
`, kind, name, where)
	for _, file := range slices.Sorted(maps.Keys(text)) {
		fmt.Fprintf(&out, "    %s: |\n", file)
		for _, line := range strings.Split(strings.TrimRight(text[file], "\n"), "\n") {
			if line != "" {
				line = "      " + line
			}
			out.WriteString(line + "\n")
		}
	}
	return out.String(), nil
}
