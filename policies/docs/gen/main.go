// SPDX-License-Identifier: Apache-2.0

// Gen writes policies/docs: a page for each decision point, made of the types of
// the contract and their comments, the metadata of the built-in policies and the
// cases. It is run in the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	pages, err := generatePages(".")
	if err == nil {
		err = writePages(filepath.Join("policies", "docs"), pages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func writePages(folder string, pages map[string]string) error {
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing page: %w", err)
		}
	}
	return nil
}
