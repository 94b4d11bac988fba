// SPDX-License-Identifier: Apache-2.0

// Package term turns Go values into Rego terms and back, without JSON between:
// facts become the input of a policy, its result becomes an answer.
//
// Field names and omitempty are those of encoding/json. Unlike there, a nil slice is an empty list and
// a nil map an empty object, so that a policy that counts them need not handle null.
package term

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Codec caches how each type is encoded and decoded. The zero value is ready to use, and is safe for
// concurrent use.
type Codec struct {
	encoders sync.Map // reflect.Type -> encodeFunc
	decoders sync.Map // reflect.Type -> decodeFunc
	plans    sync.Map // reflect.Type -> *structPlan
}

// maxDepth bounds how deep a value may be nested, so that a pointer cycle ends.
const maxDepth = 200

// Given is a field whose term the caller has already, such as a list of cached terms.
type Given struct {
	Field string
	Value ast.Value
}

// Encode makes a term from v. If v is a struct, the given terms are used for their fields.
func (c *Codec) Encode(v any, given ...Given) (ast.Value, error) {
	if v == nil {
		return ast.Null{}, nil
	}
	rv := reflect.ValueOf(v)
	if len(given) > 0 {
		for rv.Kind() == reflect.Pointer && !rv.IsNil() {
			rv = rv.Elem()
		}
		if rv.Kind() != reflect.Struct {
			return nil, fmt.Errorf("encoding %s: only a struct has fields to be given", rv.Type())
		}
		t, err := c.structPlan(rv.Type()).encodeGiven(rv, given)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", rv.Type(), err)
		}
		return t, nil
	}
	t, err := c.encoderFor(rv.Type())(rv, 0)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", rv.Type(), err)
	}
	return t, nil
}

// Limits bound a term that is decoded.
type Limits struct {
	// Nodes are scalars plus containers.
	Nodes int
	// Bytes are the bytes of all texts: strings, keys of maps, and numbers that are kept as text.
	Bytes int
	// Text is how many bytes one text may have.
	Text int
}

// Decode fills into, a pointer, from a term within some limits. It is strict: an unknown field, a missing field without
// omitempty, and a value of another type are errors.
func (c *Codec) Decode(v ast.Value, into any, limits Limits) error {
	rv := reflect.ValueOf(into)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return fmt.Errorf("decoding: %T is not a pointer to fill", into)
	}
	d := &decoding{left: limits.Nodes, bytes: limits.Bytes, max: limits}
	return c.decoderFor(rv.Type().Elem())(d, v, rv.Elem())
}

// FieldError says which part of an answer is wrong.
type FieldError struct {
	// Path is the path of the part, such as holds[2].reason; empty for the whole.
	Path string
	// Problem is the error, such as "is a string, want a number".
	Problem string
}

func (e *FieldError) Error() string {
	if e.Path == "" {
		return "the answer " + e.Problem
	}
	return e.Path + " " + e.Problem
}

// prefixPath puts the name of the surrounding field or the index before the path.
func prefixPath(err error, step string) error {
	fe, ok := err.(*FieldError) //nolint:errorlint // made here, never wrapped
	if !ok {
		return err
	}
	switch {
	case fe.Path == "":
		fe.Path = step
	case fe.Path[0] == '[':
		fe.Path = step + fe.Path
	default:
		fe.Path = step + "." + fe.Path
	}
	return fe
}

// TooLargeError says that an answer is larger than its limit.
type TooLargeError struct {
	// Of is the unit of the limit, "nodes" or "bytes of text".
	Of string
	// Size is how many it has, as far as they were read, and Limit how many it
	// may have.
	Size, Limit int
}

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than the decision point allows: it has at least %d %s, the limit is %d", e.Size, e.Of, e.Limit)
}
