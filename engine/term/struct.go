// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// field is one field of a struct, or of one embedded in it.
type field struct {
	name      string
	key       *ast.Term
	index     []int
	omitEmpty bool
	omitZero  bool
	typ       reflect.Type
	encode    encodeFunc
}

// isOptional reports whether an answer may leave the field out.
func (f *field) isOptional() bool {
	return f.omitEmpty || f.omitZero || f.typ.Kind() == reflect.Pointer
}

// fieldValue finds the field in a struct; false when it is in an embedded pointer
// that is nil.
func (f *field) fieldValue(v reflect.Value) (reflect.Value, bool) {
	if len(f.index) == 1 {
		return v.Field(f.index[0]), true
	}
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// fieldsOf lists the fields by the rules of encoding/json: the shallowest of a
// name wins, and of two equally shallow ones neither.
func fieldsOf(t reflect.Type) []field {
	type level struct {
		typ   reflect.Type
		index []int
	}
	var out []field
	depths := map[string]int{}
	seen := map[reflect.Type]bool{}
	for next, depth := []level{{typ: t}}, 0; len(next) > 0; depth++ {
		this := next
		next = nil
		for _, l := range this {
			if seen[l.typ] {
				continue
			}
			seen[l.typ] = true
			for i := range l.typ.NumField() {
				sf := l.typ.Field(i)
				name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
				if sf.Tag.Get("json") == "-" || (!sf.IsExported() && !sf.Anonymous) {
					continue
				}
				index := append(slices.Clone(l.index), i)
				if sf.Anonymous && name == "" {
					ft := sf.Type
					if ft.Kind() == reflect.Pointer {
						ft = ft.Elem()
					}
					if ft.Kind() == reflect.Struct {
						next = append(next, level{typ: ft, index: index})
						continue
					}
				}
				if !sf.IsExported() {
					continue
				}
				if name == "" {
					name = sf.Name
				}
				if d, ok := depths[name]; ok {
					if d == depth { // ambiguous: the field is left out
						out = slices.DeleteFunc(out, func(f field) bool { return f.name == name })
					}
					continue
				}
				depths[name] = depth
				out = append(out, field{
					name: name, key: ast.StringTerm(name), index: index, typ: sf.Type,
					omitEmpty: slices.Contains(strings.Split(opts, ","), "omitempty"),
					omitZero:  slices.Contains(strings.Split(opts, ","), "omitzero"),
				})
			}
		}
	}
	return out
}

type structPlan struct {
	fields []field
	byName map[string]*field
}

func (c *Codec) structPlan(t reflect.Type) *structPlan {
	if p, ok := c.plans.Load(t); ok {
		return p.(*structPlan)
	}
	p := &structPlan{fields: fieldsOf(t), byName: map[string]*field{}}
	for i := range p.fields {
		p.fields[i].encode = c.encoderFor(p.fields[i].typ)
		p.byName[p.fields[i].name] = &p.fields[i]
	}
	c.plans.Store(t, p)
	return p
}

func (p *structPlan) encodeStruct(v reflect.Value, depth int) (ast.Value, error) {
	return p.encodeWith(v, depth, nil)
}

func (p *structPlan) encodeGiven(v reflect.Value, given []Given) (ast.Value, error) {
	for _, g := range given {
		if p.byName[g.Field] == nil {
			return nil, &FieldError{Path: g.Field, Problem: "was given, but there is no such field"}
		}
	}
	return p.encodeWith(v, 0, given)
}

func (p *structPlan) encodeWith(v reflect.Value, depth int, given []Given) (ast.Value, error) {
	block := make([]ast.Term, len(p.fields))
	var onStack [24][2]*ast.Term // more fields are rare; they only cost an allocation
	pairs := onStack[:0]
next:
	for i := range p.fields {
		f := &p.fields[i]
		for _, g := range given {
			if g.Field == f.name {
				block[i].Value = g.Value
				pairs = append(pairs, [2]*ast.Term{f.key, &block[i]})
				continue next
			}
		}
		fv, ok := f.fieldValue(v)
		if !ok || (f.omitEmpty && isEmptyValue(fv)) || (f.omitZero && fv.IsZero()) {
			continue
		}
		e, err := f.encode(fv, depth+1)
		if err != nil {
			return nil, prefixPath(err, f.name)
		}
		block[i].Value = e
		pairs = append(pairs, [2]*ast.Term{f.key, &block[i]})
	}
	return ast.NewObject(pairs...), nil
}

// isEmptyValue reports whether a value is empty in the sense of omitempty in encoding/json.
func isEmptyValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Interface, reflect.Pointer:
		return v.IsZero()
	}
	return false
}

// String lists the fields, for messages.
func (p *structPlan) String() string {
	names := make([]string, len(p.fields))
	for i := range p.fields {
		names[i] = p.fields[i].name
	}
	slices.Sort(names)
	return fmt.Sprint(strings.Join(names, ", "))
}
