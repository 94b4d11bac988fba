// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (s *Site) readFile(name string) ([]byte, error) {
	return fs.ReadFile(s.source, name)
}

// copyFile has a file or a folder of the repository shown on the site, and is where.
func (s *Site) copyFile(name string) string {
	if output, ok := s.copied[name]; ok {
		return output
	}
	output := "files/" + publicPath(name)
	switch {
	case s.folders[name]:
		output += "/index.html"
		s.copied[name] = output
		for _, file := range s.filesIn(name) {
			if !isPage(file) {
				s.copyFile(file)
			}
		}
	case s.isText(name):
		output += ".html"
	}
	s.copied[name] = output
	return output
}

// isText is true of a file whose lines can be shown.
func (s *Site) isText(name string) bool {
	content, err := s.readFile(name)
	return err == nil && utf8.Valid(content) && !bytes.ContainsRune(content, 0)
}

// filesIn are the files of a folder, without those of folders in it.
func (s *Site) filesIn(folder string) []string {
	var files []string
	for name := range s.files {
		if path.Dir(name) == folder {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// hasLine is true if an anchor names a line of a file.
func (s *Site) hasLine(name, anchor string) bool {
	m := lines.FindStringSubmatch(anchor)
	if m == nil || !s.files[name] || !s.isText(name) {
		return false
	}
	content, err := s.readFile(name)
	if err != nil {
		return false
	}
	line, err := strconv.Atoi(m[1][1:])
	return err == nil && line >= 1 && line <= len(splitLines(content))
}

func splitLines(content []byte) []string {
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// PlainView is what a file or a folder of the repository is shown with.
type PlainView struct {
	Root, Title, Version string
	Code                 template.HTML
	Entries              []Link
}

// renderCopy shows a file, a line at a time so that links can name it, or a folder, or copies what is no text.
func (s *Site) renderCopy(name string) {
	output := s.copied[name]
	view := PlainView{Root: rootOf(output), Title: name, Version: s.version}
	if s.folders[name] {
		view.Entries = s.listFolder(name, output)
	} else {
		content, err := s.readFile(name)
		if err != nil {
			s.addProblem(name, "reading it: %w", err)
			return
		}
		if !s.isText(name) {
			s.addOutput(output, name, content)
			return
		}
		view.Code = renderLines(content)
	}
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, "file.html", view); err != nil {
		s.addProblem(name, "rendering it: %w", err)
		return
	}
	s.addOutput(output, name, page.Bytes())
}

func renderLines(content []byte) template.HTML {
	var out strings.Builder
	for i, line := range splitLines(content) {
		fmt.Fprintf(&out, "<span id=\"L%d\">%s</span>\n", i+1, html.EscapeString(line))
	}
	return template.HTML(out.String())
}

// listFolder has a link for each entry of a folder that is on the site, and the name alone for others.
func (s *Site) listFolder(folder, output string) []Link {
	entries := map[string]Link{}
	for _, name := range s.filesIn(folder) {
		entry := Link{Title: path.Base(name)}
		if p := s.pages[name]; p != nil {
			entry.Href = relativeURL(output, p.output, "")
		} else {
			entry.Href = relativeURL(output, s.copied[name], "")
		}
		entries[entry.Title] = entry
	}
	for name := range s.folders {
		if path.Dir(name) != folder {
			continue
		}
		entry := Link{Title: path.Base(name) + "/"}
		if index := s.indexOf(name, english); index != nil {
			entry.Href = relativeURL(output, index.output, "")
		} else if copied, ok := s.copied[name]; ok {
			entry.Href = relativeURL(output, copied, "")
		}
		entries[entry.Title] = entry
	}
	var list []Link
	for _, title := range slices.Sorted(maps.Keys(entries)) {
		list = append(list, entries[title])
	}
	return list
}
