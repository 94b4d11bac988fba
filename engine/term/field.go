// SPDX-License-Identifier: Apache-2.0

package term

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Field is a field of a struct as policies see it.
type Field struct {
	Type reflect.Type
	// OmitsEmpty is true if a policy sees no such field where it is empty, and OmitsZero where it is zero.
	OmitsEmpty, OmitsZero bool
	// InPointer is true if the field is in an embedded struct that may be nil.
	InPointer bool
}

// IsOptional reports whether an answer may leave the field out.
func (f Field) IsOptional() bool {
	return f.OmitsEmpty || f.OmitsZero || f.InPointer || f.Type.Kind() == reflect.Pointer
}

// FindField finds the field of a struct that policies know by a name; false if there is none.
func FindField(t reflect.Type, name string) (Field, bool) {
	for _, f := range fieldsOf(t) {
		if f.name != name {
			continue
		}
		out := Field{Type: f.typ, OmitsEmpty: f.omitEmpty, OmitsZero: f.omitZero}
		for at, i := t, 0; i < len(f.index)-1; i++ {
			at = at.Field(f.index[i]).Type
			if at.Kind() == reflect.Pointer {
				at, out.InPointer = at.Elem(), true
			}
		}
		return out, true
	}
	return Field{}, false
}

// HasOwnForm reports whether a type says itself what policies see of it, so that its fields and its kind say
// nothing about that.
func HasOwnForm(t reflect.Type) bool {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return true
	}
	for _, of := range []reflect.Type{reflect.TypeFor[ast.Value](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(of) {
			return true
		}
	}
	return t == reflect.TypeFor[*ast.Term]() || t == reflect.TypeFor[json.Number]()
}
