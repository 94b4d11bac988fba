// SPDX-License-Identifier: Apache-2.0

// Command generate assembles the Lua scripts for Argo CD into the ConfigMap that users apply. It is run in the root of the
// repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/regatta-sh/regatta/charts/integrations/argocd"
)

func main() {
	if err := writeConfigMap(filepath.Join("charts", "integrations", "argocd")); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// writeConfigMap writes the ConfigMap into the folder with the scripts.
func writeConfigMap(folder string) error {
	text, err := argocd.BuildConfigMap(os.DirFS(folder))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, argocd.ConfigMapFile), text, 0o644); err != nil {
		return fmt.Errorf("writing the ConfigMap: %w", err)
	}
	return nil
}
