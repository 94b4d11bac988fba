// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/policies/spec"
	"github.com/regatta-sh/regatta/test/install"
)

const chinese = ".zh-CN.md"

var (
	block   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code    = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	heading = regexp.MustCompile(`(?m)^(#+) +(.*)$`)
	number  = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
	row     = regexp.MustCompile(`(?m)^ *\|.*\|$`)
)

// readPages returns the Markdown pages of the repository by their paths, without those that tests read.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == "testdata" || entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".md") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			pages[path] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 50 {
		t.Fatalf("found %d pages", len(pages))
	}
	return pages
}

// anchorsOf are the anchors of the headings of a page, as GitHub makes them.
func anchorsOf(page string) map[string]bool {
	out, seen := map[string]bool{}, map[string]int{}
	for _, h := range heading.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
		anchor := spec.MarkdownAnchor(strings.TrimSpace(linked.ReplaceAllString(h[2], "$1")))
		if n := seen[anchor]; n > 0 {
			out[anchor+"-"+strconv.Itoa(n)] = true
		}
		seen[anchor]++
		out[anchor] = true
	}
	return out
}

func TestLinksLeadToFilesAndHeadings(t *testing.T) {
	pages := readPages(t)
	checked := 0
	for path, page := range pages {
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(block.ReplaceAllString(page, ""), ""), -1) {
			target := found[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			name, anchor, _ := strings.Cut(target, "#")
			to := path
			if name != "" {
				to = filepath.Join(filepath.Dir(path), name)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link to %s leads to no file", path, target)
				continue
			}
			if anchor != "" && pages[to] != "" && !anchorsOf(pages[to])[anchor] {
				t.Errorf("%s: the link to %s leads to no heading", path, target)
			}
			// Only the link in the second line leads to the page itself in English.
			if same := strings.TrimSuffix(to, ".md") + chinese; strings.HasSuffix(path, chinese) && same != path && pages[same] != "" {
				t.Errorf("%s: the link to %s leads to a page in English that there is in Chinese", path, target)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d links were checked", checked)
	}
}

// Whoever reads Chinese finds the same: headings, commands, manifests, names, tables and figures.
func TestPagesInTwoLanguagesSayTheSame(t *testing.T) {
	pages, compared := readPages(t), 0
	for path, translated := range pages {
		name, ok := strings.CutSuffix(path, chinese)
		if !ok {
			continue
		}
		page := pages[name+".md"]
		if page == "" {
			t.Errorf("%s is a translation of no page", path)
			continue
		}
		compared++
		for what, partsOf := range map[string]func(string) []string{
			"blocks of code":     func(page string) []string { return block.FindAllString(page, -1) },
			"levels of headings": levelsOf,
			"code in the text":   func(page string) []string { return sortedSet(code.FindAllString(block.ReplaceAllString(page, ""), -1)) },
			"figures":            func(page string) []string { return sortedSet(number.FindAllString(proseOf(page), -1)) },
			"rows of tables":     func(page string) []string { return columnsOf(block.ReplaceAllString(page, "")) },
		} {
			if diff := cmp.Diff(partsOf(page), partsOf(translated)); diff != "" {
				t.Errorf("%s has other %s than the English page (-) has:\n%s", path, what, diff)
			}
		}
	}
	if compared == 0 {
		t.Error("no page has a translation")
	}
}

func levelsOf(page string) (out []string) {
	for _, h := range heading.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
		out = append(out, h[1])
	}
	return out
}

// columnsOf is how many columns each row of the tables of a page has.
func columnsOf(page string) (out []string) {
	for _, r := range row.FindAllString(page, -1) {
		out = append(out, strconv.Itoa(strings.Count(strings.ReplaceAll(code.ReplaceAllString(r, ""), `\|`, ""), "|")))
	}
	return out
}

// proseOf is the text of a page without code and the targets of links.
func proseOf(page string) string {
	return linked.ReplaceAllString(code.ReplaceAllString(block.ReplaceAllString(page, ""), ""), "$1")
}

func sortedSet(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
