// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"
)

// makeRepository is the least that a site is built of, with a few files more.
func makeRepository(files map[string]string) (fstest.MapFS, []string) {
	source, names := fstest.MapFS{}, []string{}
	for _, all := range []map[string]string{{chartFile: "version: 1.2.3\n", iconFile: "<svg/>", "README.md": "# Regatta\n"}, files} {
		for name, content := range all {
			source[name] = &fstest.MapFile{Data: []byte(content)}
			names = append(names, name)
		}
	}
	return source, names
}

func TestHTMLOfAPageIsHarmless(t *testing.T) {
	for name, page := range map[string]string{
		"a script":                    "<script>alert(1)</script>",
		"a script in a paragraph":     "text <script src=https://evil.example/x.js></script> text",
		"a handler":                   `<img src=x onerror="alert(1)">`,
		"a frame":                     "<iframe src=https://evil.example></iframe>",
		"a style":                     "<style>@import url(https://evil.example/x.css);</style>",
		"a comment that ends early":   "<!-- --> <script>alert(1)</script> <!-- -->",
		"a comment in a comment":      "<!-- <!-- --> <img src=x onerror=alert(1)> -->",
		"a link that is a script":     "[click](javascript:alert(1))",
		"a script with entities":      "[click](&#106;avascript:alert(1))",
		"a script with a line break":  "[click](<java\nscript:alert(1)>)",
		"a script with a tab":         "[click](java&Tab;script:alert(1))",
		"an address that is a script": "<javascript:alert(1)>",
		"data":                        "[click](data:text/html;base64,PHNjcmlwdD4=)",
		"an image from elsewhere":     "![alt](https://evil.example/pixel.png)",
		"an image without a scheme":   "![alt](//evil.example/pixel.png)",
		"a link without a scheme":     "[click](//evil.example)",
		"a link in a reference":       "[click][x]\n\n[x]: javascript:alert(1) \"title\"",
		"a title that ends its quote": `[click](https://a.example "x\" onmouseover=\"alert(1)")`,
		"an alt that ends its quote":  `![x" onerror="alert(1)](../charts/kruise/icon.svg)`,
		"a language of code":          "```\" onclick=alert(1) x=\"\n<script>alert(1)</script>\n```",
		"a heading":                   "## <script>alert(1)</script> \"><img src=x onerror=alert(1)>",
		"a table":                     "| a |\n|---|\n| <script>alert(1)</script> |",
		"attributes":                  "## Heading {onclick=alert(1) #x}",
		"a title":                     "</title><script>alert(1)</script>",
		"a template":                  "{{.Version}} {{template \"file.html\"}}",
		"the end of the index":        "</script><script>alert(1)</script> \u2028 `);alert(1);//",
	} {
		t.Run(name, func(t *testing.T) {
			source, files := makeRepository(map[string]string{"a/hostile.md": "# Title " + strings.ReplaceAll(page, "\n", " ") + "\n\n" + page + "\n"})
			// What leads out of the site is an error; what is rendered all the same has to be harmless.
			site, err := buildSite(source, files)
			if site == nil {
				t.Fatal(err)
			}
			checkHarmless(t, string(site.outputs["a/hostile.html"]))
			if index := string(site.outputs[indexShared]); strings.Count(index, "\n") != 1 || strings.Contains(index, "\u2028") {
				t.Errorf("the index has more than one line: %s", index)
			}
		})
	}
}

// checkHarmless fails where a page has a script, a handler or an address other than those of the layout.
func checkHarmless(t *testing.T, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil || page == "" {
		t.Fatalf("parsing the page %q: %v", page, err)
	}
	scripts := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script":
			scripts++
		case "iframe", "object", "embed", "style", "base", "svg", "math":
			t.Errorf("the page has the element %s", n.Data)
		}
		for _, a := range n.Attr {
			if n.Data != "a" && strings.Contains(a.Val, "evil.example") && a.Key != "content" {
				t.Errorf("the element %s has the address %s", n.Data, a.Val)
			}
			value := strings.ToLower(strings.TrimSpace(a.Val))
			if strings.HasPrefix(a.Key, "on") || a.Key == "srcset" || a.Key == "action" {
				t.Errorf("the element %s has the attribute %s", n.Data, a.Key)
			}
			if (a.Key == "href" || a.Key == "src") && (strings.Contains(value, "script:") || strings.HasPrefix(value, "data:") || strings.HasPrefix(value, "//")) {
				t.Errorf("the element %s leads to %s", n.Data, a.Val)
			}
		}
	}
	if scripts != 1 {
		t.Errorf("the page has %d scripts", scripts)
	}
}

func TestAHugePageIsRenderedOrRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		part   string
		size   int
		refuse bool
	}{
		"too much text":           {part: "words\n", size: maxPageSize + 1, refuse: true},
		"much text":               {part: "words\n", size: maxPageSize - 100},
		"a line that is too long": {part: "> ", size: maxLineSize + 1, refuse: true},
		"quotes in quotes":        {part: "> ", size: 8_000},
		"lists in lists":          {part: "- ", size: 8_000},
		"columns":                 {part: "|a", size: 8_000},
		"brackets":                {part: "[", size: 30_000},
		"images":                  {part: "![", size: 30_000},
		"stars":                   {part: "*a ", size: 30_000},
		"tags":                    {part: "<a ", size: 30_000},
		"backticks":               {part: "`a``", size: 30_000},
		"headings of one name":    {part: "## a\n\n", size: 30_000},
	} {
		t.Run(name, func(t *testing.T) {
			source, files := makeRepository(map[string]string{"huge.md": "# Title\n\n" + strings.Repeat(tt.part, tt.size/len(tt.part)+1)})
			site, err := buildSite(source, files)
			if tt.refuse != (err != nil) {
				t.Errorf("the error is %v", err)
			}
			if index := site.outputs[indexShared]; len(index) > maxIndexSize {
				t.Errorf("the index has %d bytes", len(index))
			}
		})
	}
}
