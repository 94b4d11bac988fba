// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	// maxIndexSize is how large the index of a language may become; of what is larger, the sections are cut.
	maxIndexSize = 2 << 20
	maxSection   = 16 << 10
)

// The parts of the index: a page looks in its own language and, after that, in what there is in English alone.
const (
	indexEnglish = "assets/search-en.js"
	indexChinese = "assets/search-zh-CN.js"
	indexShared  = "assets/search-shared.js"
)

// IndexedPage is a page in the index: its path, title, language and sections, each an anchor, a heading and a text.
type IndexedPage struct {
	Path     string      `json:"p"`
	Title    string      `json:"t"`
	Lang     string      `json:"l"`
	Sections [][3]string `json:"s"`
}

// indexesFor are the parts of the index that the search of a page reads.
func indexesFor(p *Page) string {
	if p.lang == chinese {
		return indexChinese + " " + indexShared
	}
	return indexEnglish + " " + indexShared
}

// addIndexes writes the index. It is a script, because a page of a disk may read no other file.
func (s *Site) addIndexes() {
	for limit := maxSection; ; limit /= 2 {
		parts, err := s.makeIndexes(limit)
		if err != nil {
			s.addProblem("the index of the search", "writing it: %w", err)
			return
		}
		size := max(len(parts[indexEnglish]), len(parts[indexChinese])) + len(parts[indexShared])
		if size > maxIndexSize && limit > 1 {
			continue
		}
		if size > maxIndexSize {
			s.addProblem("the index of the search", "titles and headings alone have %d bytes, of %d: raise maxIndexSize in controllers/docs/site", size, maxIndexSize)
			return
		}
		for name, part := range parts {
			s.addOutput(name, name, part)
			s.indexSize += len(part)
		}
		return
	}
}

func (s *Site) makeIndexes(limit int) (map[string][]byte, error) {
	pages := map[string][]IndexedPage{indexEnglish: {}, indexChinese: {}, indexShared: {}}
	for _, p := range s.sortedPages() {
		part := indexEnglish
		if p.lang == chinese {
			part = indexChinese
		} else if s.pages[p.pathIn(chinese)] == nil {
			part = indexShared
		}
		page := IndexedPage{Path: p.output, Title: p.title, Lang: p.lang.Code}
		for i := range p.headings {
			h := &p.headings[i]
			text := strings.Join(strings.Fields(string(h.text)), " ")
			if runes := []rune(text); len(runes) > limit {
				text = string(runes[:limit])
			}
			page.Sections = append(page.Sections, [3]string{h.Anchor, h.Title, text})
		}
		pages[part] = append(pages[part], page)
	}
	parts := map[string][]byte{}
	for name, list := range pages {
		var out bytes.Buffer
		out.WriteString("(window.regattaPages ||= []).push(...")
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(list); err != nil {
			return nil, err
		}
		parts[name] = append(bytes.TrimSpace(out.Bytes()), ");\n"...)
	}
	return parts, nil
}
