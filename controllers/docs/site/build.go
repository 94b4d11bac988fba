// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	chartFile = "charts/kruise/Chart.yaml"
	iconFile  = "charts/kruise/icon.svg"
	// maxPageSize is that of any file that make verify lets in.
	maxPageSize = 1 << 20
	// maxLineSize keeps the time to parse a page short: quotes in quotes take its square.
	maxLineSize = 64 << 10
)

// Site is what is built: all of it is in memory, so that the folder is only touched once nothing is wrong.
type Site struct {
	source  fs.FS
	version string
	// files and folders are those of the repository.
	files, folders map[string]bool
	// pages are by the path of their Markdown file.
	pages map[string]*Page
	// order is where links first name each page, which navigation follows.
	order map[string]int
	// copied are the files and folders that the site shows because a page links to them, and where.
	copied map[string]string
	// outputs are the files of the site, by their paths.
	outputs   map[string][]byte
	indexSize int
	problems  []error
}

// listFiles returns the files that git has, or would add, by paths from the root.
func listFiles(root string) ([]string, error) {
	command := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	var complaint strings.Builder
	command.Stderr = &complaint
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w: %s(the site is made of what git has: run it in a clone, with git in the path)", root, err, complaint.String())
	}
	var files []string
	for name := range strings.SplitSeq(string(listed), "\x00") {
		if name == "" {
			continue
		}
		// A file that is removed, but not yet in git, is listed; so are links and modules.
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	return files, nil
}

// buildSite makes all files of the site, from files of the repository. The error has all that is wrong.
func buildSite(source fs.FS, files []string) (*Site, error) {
	s := &Site{
		source: source, files: map[string]bool{}, folders: map[string]bool{}, pages: map[string]*Page{},
		order: map[string]int{}, copied: map[string]string{}, outputs: map[string][]byte{},
	}
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	for _, name := range files {
		s.files[name] = true
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			s.folders[folder] = true
		}
	}
	if err := s.readVersion(); err != nil {
		return nil, err
	}
	if err := s.addAssets(); err != nil {
		return nil, err
	}
	for _, name := range files {
		if isPage(name) {
			s.readPage(name)
		}
	}
	pages := s.sortedPages()
	for _, p := range pages {
		s.resolveLinks(p)
	}
	s.orderPages()
	for _, p := range pages {
		s.renderPage(p)
	}
	for _, name := range slices.Sorted(maps.Keys(s.copied)) {
		s.renderCopy(name)
	}
	s.addIndexes()
	return s, errors.Join(s.problems...)
}

// isPage tells the pages from Markdown that tests read, and from the form of pull requests.
func isPage(name string) bool {
	return strings.HasSuffix(name, ".md") && !slices.Contains(strings.Split(path.Dir(name), "/"), "testdata") &&
		!strings.EqualFold(name, ".github/pull_request_template.md")
}

func (s *Site) sortedPages() []*Page {
	var pages []*Page
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		pages = append(pages, s.pages[name])
	}
	return pages
}

func (s *Site) readVersion() error {
	text, err := fs.ReadFile(s.source, chartFile)
	if err != nil {
		return fmt.Errorf("reading the version: %w", err)
	}
	var chart struct {
		Version string `json:"version"`
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return fmt.Errorf("reading the version from %s: %w", chartFile, err)
	}
	if chart.Version == "" {
		return fmt.Errorf("%s has no version: write one", chartFile)
	}
	s.version = chart.Version
	return nil
}

// addProblem notes what is wrong with a file, so that one run tells of all.
func (s *Site) addProblem(name, format string, args ...any) {
	s.problems = append(s.problems, fmt.Errorf("%s: %w", name, fmt.Errorf(format, args...)))
}

// addOutput refuses a second file of the same path.
func (s *Site) addOutput(name, from string, content []byte) {
	if earlier, ok := s.outputs[name]; ok && !bytes.Equal(earlier, content) {
		s.addProblem(from, "another file is %s on the site already: rename one", name)
		return
	}
	s.outputs[name] = content
}

// publicPath is a path without dots in front of its names, which servers and tools that copy sites leave out.
func publicPath(name string) string {
	names := strings.Split(name, "/")
	for i, n := range names {
		names[i] = strings.TrimLeft(n, ".")
	}
	return strings.Join(names, "/")
}
