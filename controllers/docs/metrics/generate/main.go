// SPDX-License-Identifier: Apache-2.0

// Command generate writes the page of metrics and alerts in two languages. It is run in the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/regatta-sh/regatta/controllers/docs/metrics"
)

func main() {
	if err := writePages(".", filepath.Join("controllers", "docs")); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// writePages writes the pages of a repository into a folder.
func writePages(root, folder string) error {
	pages, err := metrics.RenderPages(os.DirFS(root))
	if err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return fmt.Errorf("writing a page of metrics: %w", err)
		}
	}
	return nil
}
