// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.ParseFS(assets, "assets/*.html"))

// View is what a page is shown with.
type View struct {
	Lang                                    *Language
	Root, Home, Title, Description, Version string
	Path                                    string
	Switch                                  *Link
	Navigation                              []Group
	Contents                                []Entry
	Body                                    template.HTML
	Files                                   []Link
	Indexes                                 string
}

// Entry is one of the contents of a page.
type Entry struct {
	Link
	Below []Link
}

// addAssets adds what all pages share.
func (s *Site) addAssets() error {
	for _, name := range []string{"assets/site.css", "assets/site.js"} {
		content, err := assets.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading what pages share: %w", err)
		}
		s.outputs[name] = content
	}
	icon, err := s.readFile(iconFile)
	if err != nil {
		return fmt.Errorf("reading the icon: %w", err)
	}
	s.outputs["assets/icon.svg"] = icon
	return nil
}

func (s *Site) renderPage(p *Page) {
	if p.lang != english && s.pages[p.name] == nil {
		s.addProblem(p.path, "it is a translation of no page: add %s", p.name)
		return
	}
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.source, p.document); err != nil {
		s.addProblem(p.path, "rendering it: %w", err)
		return
	}
	view := View{
		Lang: p.lang, Root: rootOf(p.output), Title: p.title, Description: p.description, Version: s.version, Path: p.path,
		Switch: s.switchOf(p), Navigation: s.navigationOf(p), Contents: contentsOf(p),
		Body: template.HTML(body.String()), Files: s.exampleFiles(p), Indexes: indexesFor(p),
	}
	if home := s.indexOf("", p.lang); home != nil {
		view.Home = relativeURL(p.output, home.output, "")
	}
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, "page.html", view); err != nil {
		s.addProblem(p.path, "rendering it: %w", err)
		return
	}
	s.addOutput(p.output, p.path, page.Bytes())
}

// rootOf leads from a file of the site to its root.
func rootOf(output string) string {
	return strings.Repeat("../", strings.Count(output, "/"))
}

// contentsOf are the headings of the second and third level.
func contentsOf(p *Page) []Entry {
	var contents []Entry
	for i := range p.headings {
		h := &p.headings[i]
		link := Link{Href: relativeURL(p.output, p.output, h.Anchor), Title: h.Title}
		switch {
		case h.Level == 2:
			contents = append(contents, Entry{Link: link})
		case h.Level == 3 && len(contents) > 0:
			last := &contents[len(contents)-1]
			last.Below = append(last.Below, link)
		}
	}
	return contents
}

// exampleFiles are the files that the page of an example is about.
func (s *Site) exampleFiles(p *Page) []Link {
	if groupOf(p.name) != groupExamples || path.Base(p.name) != "README.md" {
		return nil
	}
	var files []Link
	for name := range s.files {
		if !isPage(name) && strings.HasPrefix(name, path.Dir(p.name)+"/") {
			files = append(files, Link{Title: strings.TrimPrefix(name, path.Dir(p.name)+"/"), Href: relativeURL(p.output, s.copyFile(name), "")})
		}
	}
	sortLinks(files)
	return files
}

func sortLinks(links []Link) {
	slices.SortFunc(links, func(a, b Link) int { return strings.Compare(a.Title, b.Title) })
}
