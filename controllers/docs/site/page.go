// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/regatta-sh/regatta/policies/spec"
)

// Page is one Markdown file.
type Page struct {
	// path is that of the Markdown file, name the same without the language, output where the page is on the site.
	path, name, output string
	lang               *Language
	title, description string
	headings           []Heading
	anchors            map[string]bool
	source             []byte
	document           ast.Node
}

// Heading is one of a page, with the text below it up to the next one.
type Heading struct {
	Level         int
	Anchor, Title string
	text          []byte
}

// linked is a link in the source of a heading, of which its anchor has the text alone.
var linked = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)

// readPage parses a page and looks up its title, description and headings.
func (s *Site) readPage(name string) {
	source, err := fs.ReadFile(s.source, name)
	if err != nil {
		s.addProblem(name, "reading it: %w", err)
		return
	}
	if len(source) > maxPageSize {
		s.addProblem(name, "it has %d bytes, of %d that a page may have: split it", len(source), maxPageSize)
		return
	}
	number := 0
	for line := range bytes.Lines(source) {
		if number++; len(line) > maxLineSize {
			s.addProblem(name, "line %d has %d bytes, of %d that a line may have: break it", number, len(line), maxLineSize)
			return
		}
	}
	p := &Page{path: name, source: source, anchors: map[string]bool{}}
	p.name, p.lang = splitLanguage(name)
	p.output = outputPath(name)
	p.document = markdown.Parser().Parse(text.NewReader(source))
	p.removeLanguageLine()
	p.joinChineseLines()
	p.readHeadings()
	if p.title == "" {
		s.addProblem(name, "it has no title: begin it with a heading, as in \"# Title\"")
		p.title = path.Base(name)
	}
	s.pages[name] = p
}

// outputPath is where a page is on the site.
func outputPath(name string) string {
	stem := strings.TrimSuffix(publicPath(name), ".md")
	folder, base := path.Split(stem)
	if rest, ok := strings.CutPrefix(base, "README"); ok && (rest == "" || rest == chinese.Suffix) {
		base = "index" + rest
	}
	return folder + base + ".html"
}

// removeLanguageLine drops the line that leads to the other language, for which the site has a switch.
func (p *Page) removeLanguageLine() {
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindParagraph {
			continue
		}
		names := strings.Split(strings.TrimSpace(p.plainText(n)), " | ")
		if len(names) == 2 && slices.Contains(names, english.Name) && slices.Contains(names, chinese.Name) {
			p.document.RemoveChild(p.document, n)
		}
		return
	}
}

// joinChineseLines drops line breaks between Chinese characters, which are no spaces there.
func (p *Page) joinChineseLines() {
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		line, ok := n.(*ast.Text)
		if !ok || !entering || !line.SoftLineBreak() {
			return ast.WalkContinue, nil
		}
		next, ok := line.NextSibling().(*ast.Text)
		if !ok {
			return ast.WalkContinue, nil
		}
		before, after := []rune(string(line.Value(p.source))), []rune(string(next.Value(p.source)))
		if len(before) > 0 && len(after) > 0 && isWide(before[len(before)-1]) && isWide(after[0]) {
			line.SetSoftLineBreak(false)
		}
		return ast.WalkContinue, nil
	})
}

// isWide is true of Chinese characters and of their punctuation.
func isWide(r rune) bool {
	return util.IsEastAsianWideRune(r) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

// readHeadings gives each heading its anchor, and collects the text below each for the search.
func (p *Page) readHeadings() {
	seen := map[string]int{}
	p.headings = []Heading{{}}
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		last := &p.headings[len(p.headings)-1]
		switch n := n.(type) {
		case *ast.Heading:
			if !entering {
				return ast.WalkContinue, nil
			}
			h := Heading{Level: n.Level, Title: strings.TrimSpace(p.plainText(n)), Anchor: p.makeAnchor(n, seen)}
			n.SetAttributeString("id", []byte(h.Anchor))
			if p.title == "" {
				p.title = h.Title
				// What is above the title belongs to it.
				last.Level, last.Anchor, last.Title = h.Level, h.Anchor, h.Title
			} else {
				p.headings = append(p.headings, h)
			}
			return ast.WalkSkipChildren, nil
		case *ast.Paragraph:
			if entering && p.description == "" {
				p.description = shortenText(p.plainText(n), 200)
			}
		}
		p.appendText(last, n, entering)
		return ast.WalkContinue, nil
	})
	if p.description == "" {
		p.description = p.title
	}
}

// makeAnchor is the anchor that links name, which test/pages checks; a second one of the same name gets a number.
func (p *Page) makeAnchor(n *ast.Heading, seen map[string]int) string {
	source := strings.TrimSpace(linked.ReplaceAllString(string(n.Lines().Value(p.source)), "$1"))
	base := spec.MarkdownAnchor(source)
	if base == "" {
		base = "section"
	}
	anchor := base
	for {
		if count := seen[base]; count > 0 {
			anchor = base + "-" + strconv.Itoa(count)
		}
		seen[base]++
		if !p.anchors[anchor] {
			p.anchors[anchor] = true
			return anchor
		}
	}
}

// plainText is the text of a node as a reader sees it.
func (p *Page) plainText(n ast.Node) string {
	var h Heading
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		p.appendText(&h, n, entering)
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(string(h.text)), " ")
}

// appendText adds what one node says itself, without its children.
func (p *Page) appendText(h *Heading, n ast.Node, entering bool) {
	switch n := n.(type) {
	case *ast.Text:
		if !entering {
			return
		}
		value := n.Value(p.source)
		if n.Parent() == nil || n.Parent().Kind() != ast.KindCodeSpan {
			value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
		}
		h.text = append(h.text, value...)
		if n.SoftLineBreak() || n.HardLineBreak() {
			h.text = append(h.text, ' ')
		}
	case *ast.AutoLink:
		if entering {
			h.text = append(h.text, n.Label(p.source)...)
		}
	case *ast.RawHTML:
		if html := n.Segments.Value(p.source); entering && !isComment(html) {
			h.text = append(h.text, html...)
		}
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		if entering {
			h.text = append(h.text, n.Lines().Value(p.source)...)
			h.text = append(h.text, ' ')
		}
	default:
		if !entering && n.Type() == ast.TypeBlock {
			h.text = append(h.text, ' ')
		}
	}
}

// shortenText cuts a text after a word, or anywhere if it has no spaces.
func shortenText(whole string, limit int) string {
	runes := []rune(whole)
	if len(runes) <= limit {
		return whole
	}
	cut := string(runes[:limit])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:，；、") + "…"
}
