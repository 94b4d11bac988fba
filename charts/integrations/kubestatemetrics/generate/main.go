// SPDX-License-Identifier: Apache-2.0

// Command generate writes the settings for kube-state-metrics and the tables of its page. It is run in the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/regatta-sh/regatta/charts/integrations/kubestatemetrics"
)

func main() {
	if err := writeSettings(filepath.Join("charts", "integrations", "kubestatemetrics")); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// writeSettings writes the values and the tables into a folder.
func writeSettings(folder string) error {
	text, err := kubestatemetrics.BuildValues()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, kubestatemetrics.ValuesFile), text, 0o644); err != nil {
		return fmt.Errorf("writing the values: %w", err)
	}
	path := filepath.Join(folder, kubestatemetrics.PageFile)
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	changed, err := kubestatemetrics.ReplaceTables(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
