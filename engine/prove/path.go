// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"reflect"
	"strconv"
	"strings"
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
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && tag != "" {
			return f.Type.Kind() == reflect.Pointer || strings.HasPrefix(options, "omit")
		}
		if f.Anonymous && tag == "" && withoutPointers(f.Type).Kind() == reflect.Struct && isOptionalField(withoutPointers(f.Type), name) {
			return true
		}
	}
	return false
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
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			if below := withoutPointers(f.Type); below.Kind() == reflect.Struct {
				if found := fieldType(below, name); found != nil {
					return found
				}
			}
		}
		if tag == name {
			return f.Type
		}
	}
	return nil
}
