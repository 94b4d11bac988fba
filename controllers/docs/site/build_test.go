// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsWrongNamesThePageAndWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a file that is not there":     {map[string]string{"a/b.md": "# B\n[x](c.md)"}, "a/b.md: the link to c.md leads to no file: mend its path"},
		"a heading that is not there":  {map[string]string{"a/b.md": "# B\n[x](../README.md#nothing)"}, "a/b.md: the link to ../README.md#nothing leads to no heading of README.md: mend"},
		"a heading of the same page":   {map[string]string{"a/b.md": "# B\n[x](#c)"}, "leads to no heading of a/b.md"},
		"a line that is not there":     {map[string]string{"a/b.md": "# B\n[x](c.go#L9)", "a/c.go": "package c\n"}, "leads to no line of the file"},
		"a path beyond the repository": {map[string]string{"a/b.md": "# B\n[x](../../c.md)"}, "leads to no file"},
		"a path from the root":         {map[string]string{"a/b.md": "# B\n[x](/README.md)"}, "begins with a slash: name the path from the folder of the page"},
		"a link to a script":           {map[string]string{"a/b.md": "# B\n[x](javascript:alert)"}, "leads out of the site: links may go to https"},
		"an image from elsewhere":      {map[string]string{"a/b.md": "# B\n![x](https://a.example/b.png)"}, "leads out of the site"},
		"an image that is not there":   {map[string]string{"a/b.md": "# B\n![x](b.png)"}, "the image b.png is no file"},
		"a page without a title":       {map[string]string{"a/b.md": "text"}, `a/b.md: it has no title: begin it with a heading`},
		"a translation of nothing":     {map[string]string{"a/b.zh-CN.md": "# B"}, "a/b.zh-CN.md: it is a translation of no page: add a/b.md"},
		"two pages of one name":        {map[string]string{"a/README.md": "# A", "a/index.md": "# B"}, "another file is a/index.html on the site already: rename one"},
		"a chart without a version":    {map[string]string{chartFile: "name: kruise"}, "charts/kruise/Chart.yaml has no version"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := buildSite(makeRepository(tt.files))
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, not %q", err, tt.says)
			}
		})
	}
}

func TestLinksLeadToPagesAndToCopiesOfFiles(t *testing.T) {
	for name, tt := range map[string]struct{ markdown, html string }{
		"a page":                       {"[x](../README.md)", `<a href="../index.html">x</a>`},
		"a heading":                    {"[x](c.md#a-b)", `<a href="c.html#a-b">x</a>`},
		"a Chinese heading":            {"[x](c.md#大-小)", `<a href="c.html#%E5%A4%A7-%E5%B0%8F">x</a>`},
		"a heading of the page":        {"[x](#b)", `<a href="#b">x</a>`},
		"a folder with a page":         {"[x](..)", `<a href="../index.html">x</a>`},
		"a folder without a page":      {"[x](../code/)", `<a href="../files/code/index.html">x</a>`},
		"a file":                       {"[x](../code/a.rego)", `<a href="../files/code/a.rego.html">x</a>`},
		"lines of a file":              {"[x](../code/a.rego#L2-L3)", `<a href="../files/code/a.rego.html#L2">x</a>`},
		"a file with a dot in front":   {"[x](../.ci/run)", `<a href="../files/ci/run.html">x</a>`},
		"a page in a folder with one":  {"[x](../.github/HELP.md)", `<a href="../github/HELP.html">x</a>`},
		"an image":                     {"![x](../code/a.png)", `<img src="../files/code/a.png" alt="x">`},
		"a file that is no text":       {"[x](../code/a.png)", `<a href="../files/code/a.png">x</a>`},
		"another site":                 {"[x](https://a.example/b)", `<a href="https://a.example/b" rel="external noreferrer">x</a>`},
		"code that looks like a link":  {"`[x](nothing.md)`", `<code>[x](nothing.md)</code>`},
		"lines of Chinese":             {"第一行，\n第二行", "第一行，第二行"},
		"lines of English":             {"one\n`two`", "one\n<code>two</code>"},
		"a comment":                    {"a <!-- b --> c", "<p>a  c</p>"},
		"a block of code":              {"```go\na < b\n```", `<pre tabindex="0"><code>a &lt; b`},
		"a table that can be scrolled": {"|a|\n|-|\n|b|", `<div class="table" tabindex="0"><table>`},
	} {
		t.Run(name, func(t *testing.T) {
			site, err := buildSite(makeRepository(map[string]string{
				"a/b.md": "# B\n\n" + tt.markdown, "a/c.md": "# C\n## A: b!\n## 大 小\n", ".github/HELP.md": "# Help",
				"code/a.rego": "1\n2\n3\n", "code/a.png": "\x89PNG\x00", ".ci/run": "run",
			}))
			if err != nil {
				t.Fatal(err)
			}
			if page := string(site.outputs["a/b.html"]); !strings.Contains(page, tt.html) {
				t.Errorf("the page has no %s:\n%s", tt.html, page)
			}
		})
	}
}

func TestHeadingsOfOneNameHaveAnchorsOfTheirOwn(t *testing.T) {
	site, err := buildSite(makeRepository(map[string]string{"b.md": "# B\n## A\n## A-1\n## A\n## [`C` d](README.md) e\n## !\n"}))
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	for i := range site.pages["b.md"].headings {
		anchors = append(anchors, site.pages["b.md"].headings[i].Anchor)
	}
	if got, want := strings.Join(anchors, " "), "b a a-1 a-2 c-d-e section"; got != want {
		t.Errorf("the anchors are %s, not %s", got, want)
	}
}

func TestTheLineThatLeadsToTheOtherLanguageIsLeftToTheSwitch(t *testing.T) {
	site, err := buildSite(makeRepository(map[string]string{
		"b.md": "# B\n\nEnglish | [简体中文](b.zh-CN.md)\n\nThe first paragraph.\n", "b.zh-CN.md": "# B\n\n[English](b.md) | 简体中文\n\n第一段。\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, description := range map[string]string{"b.md": "The first paragraph.", "b.zh-CN.md": "第一段。"} {
		p := site.pages[name]
		if p.description != description || strings.Contains(string(site.outputs[p.output]), " | ") {
			t.Errorf("%s has the description %q, or shows the line", name, p.description)
		}
	}
}

func TestASiteReplacesAnEarlierOneAndNothingElse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "site")
	site, err := buildSite(makeRepository(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSite(folder, site.outputs); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(folder, "old.html")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeSite(folder, site.outputs); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("a page of the earlier site is left")
	}
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, "assets"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.html", "assets/site.css"} {
		if err := os.WriteFile(filepath.Join(other, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSite(other, site.outputs); err == nil || !strings.Contains(err.Error(), "is no site: name an empty folder") {
		t.Errorf("a folder with other files gives %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "assets", "site.css")); err != nil {
		t.Errorf("a folder that is another site was changed: %v", err)
	}
}
