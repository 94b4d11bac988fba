// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
)

const repository = "../../.."

var buildRepository = sync.OnceValues(func() (*Site, error) {
	files, err := listFiles(repository)
	if err != nil {
		return nil, err
	}
	// What git lists is not known to go test, which repeats an earlier result unless a file or a folder changed that was read.
	folders := map[string]bool{}
	for _, file := range files {
		folders[path.Dir(file)] = true
	}
	for folder := range folders {
		if _, err := os.ReadDir(filepath.Join(repository, folder)); err != nil {
			return nil, err
		}
	}
	return buildSite(os.DirFS(repository), files)
})

func siteOfRepository(t *testing.T) *Site {
	t.Helper()
	site, err := buildRepository()
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// document is a file of the site, as a browser reads it.
type document struct {
	ids      map[string]bool
	links    []*html.Node
	elements map[string][]*html.Node
}

func parseDocument(t *testing.T, name string, content []byte) document {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d := document{ids: map[string]bool{}, elements: map[string][]*html.Node{}}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		d.elements[n.Data] = append(d.elements[n.Data], n)
		if id := attribute(n, "id"); id != "" {
			if d.ids[id] {
				t.Errorf("%s: two elements have the id %s", name, id)
			}
			d.ids[id] = true
		}
		if attribute(n, "href") != "" || attribute(n, "src") != "" || n.Data == "a" || n.Data == "img" {
			d.links = append(d.links, n)
		}
	}
	return d
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

func documentsOf(t *testing.T, site *Site) map[string]document {
	t.Helper()
	documents := map[string]document{}
	for name, content := range site.outputs {
		if strings.HasSuffix(name, ".html") {
			documents[name] = parseDocument(t, name, content)
		}
	}
	return documents
}

func TestEveryPageOfTheRepositoryIsRendered(t *testing.T) {
	site := siteOfRepository(t)
	files, err := listFiles(repository)
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, name := range files {
		if !strings.HasSuffix(name, ".md") || strings.Contains(name, "testdata/") || strings.HasSuffix(name, "PULL_REQUEST_TEMPLATE.md") {
			continue
		}
		rendered++
		p := site.pages[name]
		if p == nil || site.outputs[p.output] == nil {
			t.Errorf("%s is not on the site", name)
			continue
		}
		d := parseDocument(t, name, site.outputs[p.output])
		if lang := attribute(d.elements["html"][0], "lang"); lang != p.lang.Code {
			t.Errorf("%s has the language %q", name, lang)
		}
		for _, element := range []string{"title", "main", "h1", "header", "footer"} {
			if len(d.elements[element]) != 1 || textOf(d.elements[element][0]) == "" {
				t.Errorf("%s has %d elements %s, or an empty one", name, len(d.elements[element]), element)
			}
		}
		if !slices.ContainsFunc(d.elements["meta"], func(n *html.Node) bool {
			return attribute(n, "name") == "description" && attribute(n, "content") != ""
		}) {
			t.Errorf("%s has no description", name)
		}
		if !slices.ContainsFunc(d.elements["a"], func(n *html.Node) bool { return attribute(n, "aria-current") == "page" }) {
			t.Errorf("%s is not in its navigation", name)
		}
		for anchor := range p.anchors {
			if !d.ids[anchor] {
				t.Errorf("%s has no heading of the id %s", name, anchor)
			}
		}
		checkLevels(t, name, p)
	}
	if rendered < 50 {
		t.Errorf("%d pages were rendered", rendered)
	}
}

// checkLevels fails where a heading is more than one level below the one before it.
func checkLevels(t *testing.T, name string, p *Page) {
	t.Helper()
	level := 0
	for i := range p.headings {
		if h := &p.headings[i]; h.Level > level+1 {
			t.Errorf("%s: the heading %q of level %d is below one of level %d", name, h.Title, h.Level, level)
		}
		level = p.headings[i].Level
	}
}

func TestEveryLinkOfTheSiteLeadsToAFileAndAnElement(t *testing.T) {
	site := siteOfRepository(t)
	documents := documentsOf(t, site)
	checked := 0
	for name, d := range documents {
		for _, n := range d.links {
			target := attribute(n, "href") + attribute(n, "src")
			u, err := url.Parse(target)
			if err != nil || target == "" {
				t.Errorf("%s: the link %q: %v", name, target, err)
				continue
			}
			if u.IsAbs() {
				// A link out of the site is one that readers follow, from the text; nothing is loaded from there.
				if n.Data != "a" || attribute(n, "rel") != "external noreferrer" || u.Scheme != "https" && u.Scheme != "http" {
					t.Errorf("%s: the element %s leads to %s", name, n.Data, target)
				}
				continue
			}
			checked++
			if u.Host != "" || strings.HasPrefix(u.Path, "/") || u.RawQuery != "" {
				t.Errorf("%s: the link %s is not relative", name, target)
			}
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			if site.outputs[to] == nil {
				t.Errorf("%s: the link %s leads to no file", name, target)
			} else if u.Fragment != "" && !documents[to].ids[u.Fragment] {
				t.Errorf("%s: the link %s leads to no element", name, target)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("%d links were checked", checked)
	}
}

func TestBothLanguagesLeadToEachOther(t *testing.T) {
	site := siteOfRepository(t)
	pairs := 0
	for name, p := range site.pages {
		to := switchTarget(t, site, p)
		other := english
		if p.lang == english {
			other = chinese
		}
		want := site.pages[p.pathIn(other)]
		if want == nil {
			want = site.pages["README"+other.Suffix+".md"]
		} else {
			pairs++
		}
		if to != want.output {
			t.Errorf("%s leads to %s, not to %s", name, to, want.output)
		}
	}
	if pairs < 10 {
		t.Errorf("%d pages lead to another language", pairs)
	}
}

// switchTarget is where the switch of a page leads.
func switchTarget(t *testing.T, site *Site, p *Page) string {
	t.Helper()
	for _, n := range parseDocument(t, p.path, site.outputs[p.output]).elements["a"] {
		if attribute(n, "class") == "switch" {
			return path.Join(path.Dir(p.output), attribute(n, "href"))
		}
	}
	return ""
}

func TestChineseNavigationHasAllPagesAndMarksThoseInEnglish(t *testing.T) {
	site := siteOfRepository(t)
	home := site.pages["README.zh-CN.md"]
	d := parseDocument(t, home.path, site.outputs[home.output])
	shown := map[string]*html.Node{}
	for _, n := range d.elements["a"] {
		// The first one is that of the navigation.
		if href := attribute(n, "href"); shown[href] == nil {
			shown[href] = n
		}
	}
	for _, p := range site.pages {
		translated := site.pages[p.pathIn(chinese)]
		if p.lang == chinese || translated != nil {
			continue
		}
		n := shown[relativeURL(home.output, p.output, "")]
		if n == nil || attribute(n, "lang") != "en" || !strings.Contains(textOf(n.Parent), chinese.Foreign) {
			t.Errorf("%s is not in the Chinese navigation, or without a mark", p.path)
		}
	}
}

func TestTheIndexHasWordsOfBothLanguages(t *testing.T) {
	site := siteOfRepository(t)
	all := map[string]string{}
	for _, name := range []string{indexEnglish, indexChinese, indexShared} {
		script := strings.TrimSpace(string(site.outputs[name]))
		script = strings.TrimPrefix(script, "(window.regattaPages ||= []).push(...")
		var pages []IndexedPage
		if err := json.Unmarshal([]byte(strings.TrimSuffix(script, ");")), &pages); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, p := range pages {
			if site.outputs[p.Path] == nil {
				t.Errorf("%s has the page %s, which is not there", name, p.Path)
			}
			for _, section := range p.Sections {
				all[name] += strings.ToLower(p.Title+" "+section[1]+" "+section[2]) + "\n"
			}
		}
		t.Logf("%s has %d pages and %d KiB", name, len(pages), len(site.outputs[name])>>10)
	}
	for _, tt := range []struct{ index, word string }{
		{indexEnglish, "maxunavailable"},
		{indexEnglish, "a cloneset runs a number of equal pods"},
		{indexEnglish, "podupdatepolicy: inplaceifpossible"},
		{indexChinese, "原地升级"},
		{indexChinese, "容器启动优先级"},
		{indexChinese, "maxunavailable"},
		{indexShared, "changelog"},
	} {
		if !strings.Contains(all[tt.index], tt.word) {
			t.Errorf("%s has nothing of %q", tt.index, tt.word)
		}
	}
	for _, name := range []string{indexEnglish, indexChinese} {
		if size := len(site.outputs[name]) + len(site.outputs[indexShared]); size > maxIndexSize {
			t.Errorf("%s has %d bytes, of %d", name, size, maxIndexSize)
		}
	}
}

func TestTwoBuildsHaveTheSameBytes(t *testing.T) {
	site := siteOfRepository(t)
	files, err := listFiles(repository)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	again, err := buildSite(os.DirFS(repository), files)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(site.outputs, again.outputs, bytes.Equal) {
		t.Error("another build of the same files has other bytes")
	}
}
