// Gen writes bundle.yaml of each example: a ClusterPolicyBundle of the files
// beside it, ready for kubectl apply.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := "policies/examples"
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := generate(root, os.WriteFile); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate hands the bundle of each example to write.
func generate(root string, write func(name string, text []byte, mode os.FileMode) error) error {
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
		text, err := render(folder)
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

// render writes the YAML by hand: a library would quote text that has tabs, and
// nobody could read it then.
func render(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.rego"))
	if err != nil {
		return "", fmt.Errorf("finding files: %w", err)
	}
	name := filepath.Base(folder)
	var out strings.Builder
	fmt.Fprintf(&out, `# Made by "make generate" from the files beside it: edit those.
apiVersion: policy.kruise.io/v1alpha1
kind: ClusterPolicyBundle
metadata:
  name: %s
spec:
  files:
`, name)
	for _, file := range files { // in the order of their names
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading file: %w", err)
		}
		fmt.Fprintf(&out, "    %s/%s: |\n", name, filepath.Base(file))
		for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
			if line != "" {
				line = "      " + line
			}
			out.WriteString(line + "\n")
		}
	}
	return out.String(), nil
}
