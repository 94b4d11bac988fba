// SPDX-License-Identifier: Apache-2.0

// Header adds the licence to Go files that do not name one: a line in front of
// everything else. It skips generated files. It is run in the root of the repository.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const header = "// SPDX-License-Identifier: Apache-2.0\n\n"

// generated is what the go command takes a generated file by.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func main() {
	list := flag.Bool("l", false, "list the files that have no header, and change none")
	flag.Parse()
	if err := run(".", *list, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "header:", err)
		os.Exit(1)
	}
}

// run prints the files without a header, and adds it unless they are only listed.
func run(root string, list bool, out io.Writer) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading file: %w", err)
		}
		if bytes.HasPrefix(text, []byte(header)) || generated.Match(text) {
			return nil
		}
		fmt.Fprintln(out, path)
		if list {
			return nil
		}
		if err := os.WriteFile(path, append([]byte(header), text...), 0o644); err != nil {
			return fmt.Errorf("adding header: %w", err)
		}
		return nil
	})
}
