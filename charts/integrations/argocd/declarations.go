// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// declarations are the functions and constants that scripts share, by their names: the text of each.
type declarations map[string]string

var (
	declared = regexp.MustCompile(`^local (?:function )?(\w+)`)
	word     = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// addFile adds the declarations of a file, which has nothing else. A name must not be declared twice.
func (d declarations) addFile(source fs.FS, file string) error {
	lines, err := readCode(source, file)
	if err != nil {
		return err
	}
	name := ""
	for _, line := range lines {
		if found := declared.FindStringSubmatch(line); found != nil {
			name = found[1]
			if d[name] != "" {
				return fmt.Errorf("%s declares %s, which is declared already", file, name)
			}
		}
		switch {
		case strings.TrimSpace(line) == "":
		case name == "":
			return fmt.Errorf("%s has a line that belongs to no declaration: %s", file, line)
		default:
			d[name] += line + "\n"
		}
	}
	return nil
}

// listUsed returns the declarations that a script uses, each behind those that it uses itself.
func (d declarations) listUsed(script string) ([]string, error) {
	u := usage{declarations: d, marks: map[string]marking{}}
	err := u.addUsed(script)
	return u.ordered, err
}

// usage collects declarations.
type usage struct {
	declarations
	marks   map[string]marking
	ordered []string
}

// marking is how far the collection of a declaration is.
type marking int

const (
	unseen marking = iota
	open
	added
)

// addUsed adds the declarations whose names are words of a text. Lua knows a local name only behind its declaration, so two
// that use each other are an error.
func (u *usage) addUsed(text string) error {
	for _, name := range word.FindAllString(text, -1) {
		declaration, known := u.declarations[name]
		if !known || u.marks[name] == added || declaration == text {
			continue
		}
		if u.marks[name] == open {
			return fmt.Errorf("%s uses itself by way of other declarations", name)
		}
		u.marks[name] = open
		if err := u.addUsed(declaration); err != nil {
			return err
		}
		u.marks[name] = added
		u.ordered = append(u.ordered, declaration)
	}
	return nil
}
