// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Line masks the parts of one line, the input first.
type Line struct {
	mask   *Mask
	masked []string
	// hidden are texts that must not appear in a message either; replacer has the first of them, as many
	// as replaced says.
	hidden   []string
	replaced int
	replacer *strings.Replacer
	names    map[string]name
	inside   int // how many levels of documents in texts the scan is inside
}

// name caches the properties of a name, so that they are computed once for each line.
type name struct {
	lower     string
	pointer   string
	secretive bool
}

// BeginLine begins a line.
func (m *Mask) BeginLine() *Line { return &Line{mask: m, names: map[string]name{}} }

// HiddenTexts returns the hidden texts, except short ones, which may occur by chance. They must not appear elsewhere either.
func (l *Line) HiddenTexts() []string { return l.hidden }

// MaskedPointers returns pointers to the hidden values, sorted.
func (l *Line) MaskedPointers() []string {
	slices.Sort(l.masked)
	return slices.Compact(l.masked)
}

// MaskJSON masks a document as json.Marshal writes it: valid and without blanks. The document is the
// given field of the line.
func (l *Line) MaskJSON(field string, doc []byte) []byte {
	s := &scan{Line: l, out: make([]byte, 0, len(doc))}
	states := make([]uint64, len(l.mask.patterns))
	for i := range l.mask.patterns {
		states[i] = l.mask.patterns[i].startStates()
	}
	s.states = states
	s.enterKey(field)
	s.scanDocument(doc)
	return s.out
}

// distinctive is how long a hidden text must be to be searched for in messages: "1" and "true" occur
// everywhere.
const distinctive = 6

// MaskMessage masks a message, in which a policy may have put values of its input.
func (l *Line) MaskMessage(field, text string) string {
	clean := l.maskSentence(text)
	if clean != text {
		l.masked = append(l.masked, "/"+field)
	}
	return clean
}

func (l *Line) maskSentence(text string) string {
	if len(l.hidden) > l.replaced {
		// The longest first: a text may contain another one.
		slices.SortFunc(l.hidden, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
		})
		l.hidden = slices.Compact(l.hidden)
		pairs := make([]string, 0, 2*len(l.hidden))
		for _, h := range l.hidden {
			pairs = append(pairs, h, Text)
		}
		l.replaced, l.replacer = len(l.hidden), strings.NewReplacer(pairs...)
	}
	if l.replacer != nil {
		text = l.replacer.Replace(text)
	}
	if LooksSecret(text) {
		return Text
	}
	return text
}

// scan visits a document without recursion, since its depth is not limited.
type scan struct {
	*Line
	out    []byte
	frames []frame
	path   []byte
	states []uint64 // of the parents and, at the end, of the current value
	at     place
}

// place describes the current value.
type place struct {
	name      string // empty in a list
	secretive bool
	pattern   bool // a pattern hides it
	flagged   bool // it follows an argument such as --password
}

// frame is an open container.
type frame struct {
	list    bool
	index   int
	name    string // its own name
	path    int    // the length of the path to it
	flagged bool
}

// enterKey enters a value of an object.
func (s *scan) enterKey(key string) {
	n, ok := s.names[key]
	if !ok {
		n = name{lower: strings.ToLower(key), pointer: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key), secretive: IsSecretName(key)}
		s.names[key] = n
	}
	s.path = append(s.path, n.pointer...)
	s.at = place{name: key, secretive: n.secretive}
	s.stepPatterns(n.lower)
}

// enterIndex enters an element of a list.
func (s *scan) enterIndex(i int) {
	digits := strconv.Itoa(i)
	s.path = append(append(s.path, '/'), digits...)
	s.at = place{}
	s.stepPatterns(digits)
}

func (s *scan) stepPatterns(lower string) {
	n := len(s.mask.patterns)
	before := len(s.states) - n
	for i := range s.mask.patterns {
		p := &s.mask.patterns[i]
		next := p.nextStates(s.states[before+i], lower)
		s.at.pattern = s.at.pattern || p.isMatched(next)
		s.states = append(s.states, next)
	}
}

// leaveValue returns to the container of the current value.
func (s *scan) leaveValue() {
	s.states = s.states[:len(s.states)-len(s.mask.patterns)]
	if len(s.frames) > 0 {
		s.path = s.path[:s.frames[len(s.frames)-1].path]
	}
}

func (s *scan) scanDocument(doc []byte) {
	for i := 0; ; {
		i = s.scanValue(doc, i)
		for {
			if len(s.frames) == 0 {
				return
			}
			if doc[i] == ',' {
				s.out = append(s.out, ',')
				i++
			}
			if doc[i] != '}' && doc[i] != ']' {
				break
			}
			s.out = append(s.out, doc[i])
			i++
			s.frames = s.frames[:len(s.frames)-1]
			s.leaveValue()
		}
		f := &s.frames[len(s.frames)-1]
		if f.list {
			s.enterIndex(f.index)
			f.index++
			s.at.flagged, f.flagged = f.flagged, false
			continue
		}
		end := endOfText(doc, i)
		s.out = append(s.out, doc[i:end+1]...) // including the colon
		s.enterKey(unquoteText(doc[i:end]))
		i = end + 1
	}
}

// scanValue handles the value that begins at i, or only opens a container, and returns where to
// continue.
func (s *scan) scanValue(doc []byte, i int) int {
	container := doc[i] == '{' || doc[i] == '['
	if s.shouldHide(doc[i]) {
		end := endOf(doc, i)
		s.hideValue(doc[i:end])
		s.leaveValue()
		return end
	}
	if container {
		s.out = append(s.out, doc[i])
		s.frames = append(s.frames, frame{list: doc[i] == '[', name: s.at.name, path: len(s.path)})
		return i + 1
	}
	end := endOf(doc, i)
	if doc[i] == '"' {
		s.scanText(doc[i:end])
	} else {
		s.out = append(s.out, doc[i:end]...)
	}
	s.leaveValue()
	return end
}

// shouldHide reports whether the current value, which begins with c, is hidden because of its place.
func (s *scan) shouldHide(c byte) bool {
	container := c == '{' || c == '['
	switch {
	case s.at.pattern:
		return true
	case c == 'n':
		return false
	case s.isVariable(container) || s.isKey():
		return true
	case s.at.flagged && c == '"':
		return true
	case !s.at.secretive || c == 't' || c == 'f':
		return false
	}
	return !s.isSecretReference(c)
}

// isVariable reports whether the current value is that of an environment variable, in a list as in
// pods, or in a map by name.
func (s *scan) isVariable(container bool) bool {
	n := len(s.frames)
	return n > 0 && !container && isEnv(s.frames[n-1].name) || n > 1 && s.at.name == "value" && isEnv(s.frames[n-2].name)
}

func isEnv(name string) bool {
	return len(name) < 10 && (strings.EqualFold(name, "env") || strings.EqualFold(name, "envs") || strings.EqualFold(name, "envvars"))
}

// isKey reports whether the current value is an annotation named key. Elsewhere a key is the name of
// something.
func (s *scan) isKey() bool {
	n := len(s.frames)
	return n > 0 && s.frames[n-1].name == "annotations" && strings.HasSuffix(strings.ToLower(s.at.name), "key")
}

// isSecretReference reports whether the current value only names a Secret.
func (s *scan) isSecretReference(c byte) bool {
	if len(s.frames) == 0 {
		return false
	}
	parent := s.frames[len(s.frames)-1]
	if parent.name == "annotations" || parent.name == "labels" {
		return false // users choose these names
	}
	if isReference(s.at.name) {
		return c != '"' || s.at.name == "secretName"
	}
	if s.at.name != "secret" || c != '{' || len(s.frames) < 2 {
		return false
	}
	list := s.frames[len(s.frames)-2]
	return list.list && (list.name == "volumes" || list.name == "sources")
}

// hideValue writes a value of the same type that reveals nothing.
func (s *scan) hideValue(value []byte) {
	instead := "0"
	switch value[0] {
	case '"':
		instead = `"` + Text + `"`
		if text := unquoteText(value); len(text) >= distinctive {
			s.hidden = append(s.hidden, text)
		}
	case '{':
		instead = "{}"
	case '[':
		instead = "[]"
	case 't', 'f':
		instead = "false"
	case 'n':
		instead = "null"
	}
	if string(value) == `""` { // nothing is no secret
		instead = `""`
	}
	s.replaceValue(value, instead)
}

// replaceValue writes another text in place of a value.
func (s *scan) replaceValue(value []byte, instead string) {
	s.out = append(s.out, instead...)
	if instead != string(value) {
		s.masked = append(s.masked, string(s.path))
	}
}

// deepest is how many levels of documents in texts are scanned; a text at a deeper level is hidden.
const deepest = 4

// scanText masks a text that is not hidden because of its place.
func (s *scan) scanText(quoted []byte) {
	text := unquoteText(quoted)
	if doc, unclear := innerDocument(text); doc != nil || unclear {
		if unclear || s.inside == deepest {
			s.hideValue(quoted)
			return
		}
		if clean := s.maskDocument(doc); clean != string(doc) {
			s.replaceValue(quoted, string(quoteText(clean)))
		} else {
			s.out = append(s.out, quoted...)
		}
		return
	}
	if s.at.name == "message" && strings.HasPrefix(string(s.path), "/result") {
		if clean := s.maskSentence(text); clean != text {
			s.replaceValue(quoted, string(quoteText(clean)))
			return
		}
	}
	if LooksSecret(text) {
		s.hideValue(quoted)
		return
	}
	if n := len(s.frames); n > 0 && s.frames[n-1].list && strings.HasPrefix(text, "-") && IsSecretName(text) {
		s.frames[n-1].flagged = true
	}
	s.out = append(s.out, quoted...)
}

// maskDocument masks a document in a text, with the place of the text.
func (s *scan) maskDocument(doc []byte) string {
	before := len(s.masked)
	n := len(s.mask.patterns)
	in := &scan{Line: s.Line, at: place{name: s.at.name}, path: slices.Clone(s.path), states: slices.Clone(s.states[len(s.states)-n:])}
	s.inside++
	in.scanDocument(doc)
	s.inside--
	s.masked = s.masked[:before] // one pointer to the text suffices
	return string(in.out)
}
