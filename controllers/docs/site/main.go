// SPDX-License-Identifier: Apache-2.0

// Site writes the Markdown pages of the repository as a static site, which opens from a disk as well as
// from a server. It asks git which files there are.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the root of the repository")
	folder := flag.String("folder", "_output/site", "where to write the site; what an earlier run wrote there is replaced")
	flag.Parse()
	if err := generateSite(*root, *folder, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// generateSite writes nothing unless the whole site can be built.
func generateSite(root, folder string, out io.Writer) error {
	files, err := listFiles(root)
	if err != nil {
		return err
	}
	site, err := buildSite(os.DirFS(root), files)
	if err != nil {
		return err
	}
	if err := writeSite(folder, site.outputs); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d pages, %d files and folders that they link to, a search index of %d KiB\n",
		filepath.Join(folder, "index.html"), len(site.pages), len(site.copied), site.indexSize>>10)
	return nil
}

// marker is a file that nothing else has: a folder with it may be replaced. It is written first, so that a run
// that was interrupted can be repeated.
const marker = ".written-by-regatta-site"

// writeSite replaces a folder. It refuses a folder that has something else than a site.
func writeSite(folder string, outputs map[string][]byte) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading the folder of the site: %w", err)
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(folder, marker)); err != nil {
			return fmt.Errorf("%s has files and is no site: name an empty folder with -folder", folder)
		}
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("removing the earlier site: %w", err)
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder of the site: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, marker), []byte("make site replaces this folder.\n"), 0o644); err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}
	for name, content := range outputs {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder of the site: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("writing the site: %w", err)
		}
	}
	return nil
}
