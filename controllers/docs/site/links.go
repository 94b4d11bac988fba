// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

var (
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	// lines is the anchor of one or more lines of a file.
	lines = regexp.MustCompile(`^(L\d+)(?:-L\d+)?$`)
)

// resolveLinks makes the links of a page those of the site. What leads nowhere becomes text, and a problem.
func (s *Site) resolveLinks(p *Page) {
	var found []ast.Node
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && (n.Kind() == ast.KindLink || n.Kind() == ast.KindImage || n.Kind() == ast.KindAutoLink) {
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range found {
		switch n := n.(type) {
		case *ast.Link:
			s.resolveLink(p, n)
		case *ast.Image:
			s.resolveImage(p, n)
		case *ast.AutoLink:
			target := string(n.URL(p.source))
			switch {
			case n.AutoLinkType == ast.AutoLinkEmail:
			case isWebAddress(target):
				n.SetAttributeString("rel", []byte("external noreferrer"))
			default:
				s.addProblem(p.path, "the link to %s leads out of the site: only https, http and mailto may", target)
				label := ast.NewString(n.Label(p.source))
				label.SetRaw(true)
				n.Parent().ReplaceChild(n.Parent(), n, label)
			}
		}
	}
}

func isWebAddress(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

func (s *Site) resolveLink(p *Page, n *ast.Link) {
	target := string(n.Destination)
	if isWebAddress(target) {
		n.SetAttributeString("rel", []byte("external noreferrer"))
		return
	}
	if strings.HasPrefix(strings.ToLower(target), "mailto:") {
		return
	}
	name, anchor, ok := s.splitTarget(p, target)
	if !ok {
		unwrapNode(n)
		return
	}
	output, ok := s.outputOf(p, target, name, anchor)
	if !ok {
		unwrapNode(n)
		return
	}
	if m := lines.FindStringSubmatch(anchor); m != nil {
		anchor = m[1]
	}
	n.Destination = []byte(relativeURL(p.output, output, anchor))
}

func (s *Site) resolveImage(p *Page, n *ast.Image) {
	target := string(n.Destination)
	name, _, ok := s.splitTarget(p, target)
	if ok && !s.files[name] {
		s.addProblem(p.path, "the image %s is no file: mend its path, or add the file to git", target)
		ok = false
	}
	if !ok {
		unwrapNode(n)
		return
	}
	content, err := s.readFile(name)
	if err != nil {
		s.addProblem(p.path, "reading the image: %w", err)
		return
	}
	output := "files/" + publicPath(name)
	s.addOutput(output, name, content)
	n.Destination = []byte(relativeURL(p.output, output, ""))
}

// splitTarget is the path and the anchor that a link inside of the repository names.
func (s *Site) splitTarget(p *Page, target string) (name, anchor string, ok bool) {
	if scheme.MatchString(target) || strings.HasPrefix(target, "//") {
		s.addProblem(p.path, "the link to %s leads out of the site: links may go to https, http and mailto, images to files of the repository", target)
		return "", "", false
	}
	if strings.HasPrefix(target, "/") {
		s.addProblem(p.path, "the link to %s begins with a slash: name the path from the folder of the page", target)
		return "", "", false
	}
	name, anchor, _ = strings.Cut(target, "#")
	name, errName := url.PathUnescape(name)
	anchor, errAnchor := url.PathUnescape(anchor)
	if errName != nil || errAnchor != nil {
		s.addProblem(p.path, "the link to %s has a %% that begins no character: write %%25", target)
		return "", "", false
	}
	if name == "" {
		return p.path, anchor, true
	}
	return path.Join(path.Dir(p.path), name), anchor, true
}

// outputOf is the file of the site that shows a file or a folder of the repository. The anchor has to be there.
func (s *Site) outputOf(p *Page, target, name, anchor string) (string, bool) {
	if s.folders[name] || name == "." {
		if index := s.indexOf(name, p.lang); index != nil {
			name = index.path
		}
	}
	if to := s.pages[name]; to != nil {
		if anchor != "" && !to.anchors[anchor] {
			s.addProblem(p.path, "the link to %s leads to no heading of %s: mend what is behind the #", target, to.path)
			return "", false
		}
		return to.output, true
	}
	if !s.files[name] && !s.folders[name] {
		s.addProblem(p.path, "the link to %s leads to no file: mend its path, or add the file to git", target)
		return "", false
	}
	if anchor != "" && !s.hasLine(name, anchor) {
		s.addProblem(p.path, "the link to %s leads to no line of the file: mend what is behind the #, as in #L12", target)
		return "", false
	}
	return s.copyFile(name), true
}

// indexOf is the page of a folder, in a language if there is one.
func (s *Site) indexOf(folder string, lang *Language) *Page {
	if p := s.pages[path.Join(folder, "README"+lang.Suffix+".md")]; p != nil {
		return p
	}
	return s.pages[path.Join(folder, "README.md")]
}

// unwrapNode leaves of a link or an image what it shows.
func unwrapNode(n ast.Node) {
	parent := n.Parent()
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		parent.InsertBefore(parent, n, child)
	}
	parent.RemoveChild(parent, n)
}

// relativeURL is how one file of the site names another.
func relativeURL(from, to, anchor string) string {
	if from == to && anchor != "" {
		return (&url.URL{Fragment: anchor}).String()
	}
	var up []string
	folders := strings.Split(path.Dir(from), "/")
	if folders[0] == "." {
		folders = nil
	}
	names := strings.Split(to, "/")
	for len(folders) > 0 && len(names) > 1 && folders[0] == names[0] {
		folders, names = folders[1:], names[1:]
	}
	for range folders {
		up = append(up, "..")
	}
	return (&url.URL{Path: strings.Join(append(up, names...), "/"), Fragment: anchor}).String()
}
