// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/regatta-sh/regatta/engine/term"
)

// step is one step of a path below the input.
type step struct {
	// name is a field of an object, or a key of a map.
	name string
	// each stands for any element of a list or any entry of a map.
	each bool
}

// factPath is a path below the input of a point. If key is true, it means the keys of its entries.
type factPath struct {
	steps []step
	key   bool
}

func (p factPath) String() string {
	var out strings.Builder
	out.WriteString("input")
	for _, s := range p.steps {
		switch {
		case s.each:
			out.WriteString("[_]")
		case isPlainName(s.name):
			out.WriteString("." + s.name)
		default:
			out.WriteString("[" + strconv.Quote(s.name) + "]")
		}
	}
	if p.key {
		out.WriteString("[key]")
	}
	return out.String()
}

func isPlainName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func (p factPath) appendStep(s step) factPath {
	return factPath{steps: append(p.steps[:len(p.steps):len(p.steps)], s)}
}

// resolveType returns the type of a fact, without pointers; nil if the input has no such fact.
func (p factPath) resolveType(in reflect.Type) reflect.Type {
	t := in
	for _, s := range p.steps {
		if t = stepType(t, s); t == nil {
			return nil
		}
	}
	if t = withoutPointers(t); p.key && t.Kind() == reflect.Map {
		return t.Key()
	} else if p.key {
		return nil
	}
	return t
}

// isOptional reports whether an input may lack the fact.
func (p factPath) isOptional(in reflect.Type) bool {
	t := in
	for _, s := range p.steps {
		of := withoutPointers(t)
		if of.Kind() == reflect.Map || of.Kind() == reflect.Struct && isOptionalField(of, s.name) {
			return true
		}
		if t = stepType(t, s); t == nil {
			return false
		}
	}
	return false
}

// isOptionalField reports whether JSON may lack a field of a struct.
func isOptionalField(t reflect.Type, name string) bool {
	f, ok := term.FindField(t, name)
	return ok && f.IsOptional()
}

// stepType returns the type of a part of a value, which may be a pointer; nil if there is no such part.
func stepType(t reflect.Type, s step) reflect.Type {
	switch t = withoutPointers(t); {
	case t.Kind() == reflect.Map, t.Kind() == reflect.Slice && s.each:
		return t.Elem()
	case t.Kind() == reflect.Struct && !s.each:
		return fieldType(t, s.name)
	}
	return nil
}

func withoutPointers(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// fieldType finds a field of a struct by its name in JSON.
func fieldType(t reflect.Type, name string) reflect.Type {
	f, ok := term.FindField(t, name)
	if !ok {
		return nil
	}
	return f.Type
}
