// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// startPages are what to read first, in this order.
var startPages = []string{"README.md", "charts/README.md", "charts/kruise/README.md", "charts/kruise/CLUSTERS.md"}

// indexPages are pages whose links say in which order navigation has the others.
var indexPages = []string{"README.md", "controllers/docs/README.md", "policies/README.md", "policies/docs/README.md", "policies/spec/README.md"}

// groups are those of the navigation, in their order; those below a group come after its own pages.
var groups = []struct {
	key   string
	below []string
}{
	{groupStart, nil},
	{groupGuides, nil},
	{groupKinds, nil},
	{groupPolicies, []string{groupDecisions, groupExamples}},
	{groupReference, []string{groupRules}},
}

// Link leads to another file of the site; without Href it is a name alone.
type Link struct {
	Href, Title string
	// Lang is the language of what it leads to, if that is another one, and Mark says so to readers.
	Lang, Mark string
	Current    bool
}

// Group is a part of the navigation.
type Group struct {
	Title string
	Open  bool
	Links []Link
	Below []Group
}

// groupOf says where a page is in the navigation; name is its path without the language.
func groupOf(name string) string {
	if slices.Contains(startPages, name) {
		return groupStart
	}
	if strings.HasPrefix(name, "controllers/docs/") {
		return groupGuides
	}
	if ok, _ := path.Match("controllers/*/README.md", name); ok {
		return groupKinds
	}
	switch {
	case name == "policies/README.md":
		return groupPolicies
	case strings.HasPrefix(name, "policies/docs/"):
		return groupDecisions
	case strings.HasPrefix(name, "policies/examples/"):
		return groupExamples
	case strings.HasPrefix(name, "policies/spec/"):
		return groupRules
	}
	return groupReference
}

// orderPages notes the order of the pages: as the pages that list them link to them, the others by their paths.
func (s *Site) orderPages() {
	place := func(name string) {
		if _, ok := s.order[name]; !ok {
			s.order[name] = len(s.order)
		}
	}
	for _, name := range startPages {
		place(name)
	}
	byOutput := map[string]string{}
	for _, p := range s.sortedPages() {
		byOutput[p.output] = p.name
	}
	for _, name := range indexPages {
		p := s.pages[name]
		if p == nil {
			continue
		}
		place(name)
		_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if link, ok := n.(*ast.Link); ok && entering {
				target, _, _ := strings.Cut(string(link.Destination), "#")
				if to := byOutput[path.Join(path.Dir(p.output), target)]; to != "" {
					place(to)
				}
			}
			return ast.WalkContinue, nil
		})
	}
	for _, p := range s.sortedPages() {
		place(p.name)
	}
}

// navigationOf is the navigation as one page shows it.
func (s *Site) navigationOf(current *Page) []Group {
	members := map[string][]*Page{}
	for _, p := range s.pages {
		if p.lang != english {
			continue
		}
		shown := p
		if translated := s.pages[p.pathIn(current.lang)]; translated != nil {
			shown = translated
		}
		key := groupOf(p.name)
		members[key] = append(members[key], shown)
	}
	var all []Group
	for _, g := range groups {
		group := s.makeGroup(g.key, members[g.key], current)
		for _, key := range g.below {
			below := s.makeGroup(key, members[key], current)
			group.Open = group.Open || below.Open
			if len(below.Links) > 0 {
				group.Below = append(group.Below, below)
			}
		}
		if len(group.Links)+len(group.Below) > 0 {
			all = append(all, group)
		}
	}
	return all
}

func (s *Site) makeGroup(key string, members []*Page, current *Page) Group {
	slices.SortFunc(members, func(a, b *Page) int { return cmp.Compare(s.order[a.name], s.order[b.name]) })
	group := Group{Title: current.lang.Group[key]}
	for _, p := range members {
		link := Link{Href: relativeURL(current.output, p.output, ""), Title: p.title, Current: p == current}
		if p.lang != current.lang {
			link.Lang, link.Mark = p.lang.Code, current.lang.Foreign
		}
		group.Open = group.Open || link.Current
		group.Links = append(group.Links, link)
	}
	return group
}

// switchOf leads to the same page in the other language, or to its first page if there is none.
func (s *Site) switchOf(p *Page) *Link {
	other := chinese
	if p.lang == chinese {
		other = english
	}
	if to := s.pages[p.pathIn(other)]; to != nil {
		return &Link{Href: relativeURL(p.output, to.output, ""), Title: other.Name, Lang: other.Code}
	}
	if to := s.indexOf("", other); to != nil && to.lang == other {
		return &Link{Href: relativeURL(p.output, to.output, ""), Title: other.Start, Lang: other.Code}
	}
	return nil
}
