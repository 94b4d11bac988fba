// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

type encodeFunc func(v reflect.Value, depth int) (ast.Value, error)

// encoderFor returns the cached encoder of a type.
func (c *Codec) encoderFor(t reflect.Type) encodeFunc {
	if f, ok := c.encoders.Load(t); ok {
		return f.(encodeFunc)
	}
	// A type may contain itself, so there must be a placeholder while the encoder is being made, and
	// another goroutine may get the placeholder too.
	var made sync.WaitGroup
	var f encodeFunc
	made.Add(1)
	early, known := c.encoders.LoadOrStore(t, encodeFunc(func(v reflect.Value, depth int) (ast.Value, error) {
		made.Wait()
		return f(v, depth)
	}))
	if known {
		return early.(encodeFunc)
	}
	f = c.newEncoder(t)
	made.Done()
	c.encoders.Store(t, f)
	return f
}

func (c *Codec) newEncoder(t reflect.Type) encodeFunc {
	switch t {
	case reflect.TypeFor[*ast.Term]():
		return encodeTerm
	case reflect.TypeFor[json.Number]():
		return func(v reflect.Value, _ int) (ast.Value, error) { return encodeNumber(v.String()) }
	}
	if t.Implements(reflect.TypeFor[ast.Value]()) {
		return encodeValue
	}
	if t.Kind() != reflect.Interface && t.Implements(reflect.TypeFor[json.Marshaler]()) {
		return encodeJSON
	}
	if t.Kind() != reflect.Interface && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return encodeText
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(v reflect.Value, _ int) (ast.Value, error) { return ast.InternedValue(v.Bool()), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value, _ int) (ast.Value, error) { return ast.InternedValue(v.Int()), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(v reflect.Value, _ int) (ast.Value, error) { return encodeUint(v.Uint()), nil }
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value, _ int) (ast.Value, error) { return encodeFloat(v.Float(), t.Bits()) }
	case reflect.String:
		return func(v reflect.Value, _ int) (ast.Value, error) { return ast.String(v.String()), nil }
	case reflect.Struct:
		return c.structPlan(t).encodeStruct
	case reflect.Map:
		return c.mapEncoder(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return encodeJSON // as encoding/json: base64
		}
		return c.listEncoder(t)
	case reflect.Array:
		return c.listEncoder(t)
	case reflect.Pointer:
		return c.pointerEncoder(t)
	case reflect.Interface:
		return c.encodeInterface
	}
	return func(reflect.Value, int) (ast.Value, error) {
		return nil, &FieldError{Problem: fmt.Sprintf("is a %s, which no policy can be told", t)}
	}
}

func encodeTerm(v reflect.Value, _ int) (ast.Value, error) {
	if v.IsNil() {
		return ast.InternedNullValue, nil
	}
	return v.Interface().(*ast.Term).Value, nil
}

func encodeValue(v reflect.Value, _ int) (ast.Value, error) {
	if v.Kind() == reflect.Interface && v.IsNil() {
		return ast.InternedNullValue, nil
	}
	return v.Interface().(ast.Value), nil
}

func (c *Codec) encodeInterface(v reflect.Value, depth int) (ast.Value, error) {
	if v.IsNil() {
		return ast.InternedNullValue, nil
	}
	if depth > maxDepth {
		return nil, &FieldError{Problem: "is nested too deep"}
	}
	return c.encoderFor(v.Elem().Type())(v.Elem(), depth+1)
}

func (c *Codec) pointerEncoder(t reflect.Type) encodeFunc {
	elem := c.encoderFor(t.Elem())
	return func(v reflect.Value, depth int) (ast.Value, error) {
		if v.IsNil() {
			return ast.InternedNullValue, nil
		}
		if depth > maxDepth {
			return nil, &FieldError{Problem: "is nested too deep"}
		}
		return elem(v.Elem(), depth+1)
	}
}

func (c *Codec) listEncoder(t reflect.Type) encodeFunc {
	elem := c.encoderFor(t.Elem())
	return func(v reflect.Value, depth int) (ast.Value, error) {
		n := v.Len()
		if n == 0 {
			return ast.InternedEmptyArrayValue, nil
		}
		if depth > maxDepth {
			return nil, &FieldError{Problem: "is nested too deep"}
		}
		// One allocation for all the terms, since they have the same lifetime.
		block, terms := make([]ast.Term, n), make([]*ast.Term, n)
		for i := range n {
			e, err := elem(v.Index(i), depth+1)
			if err != nil {
				return nil, prefixPath(err, "["+strconv.Itoa(i)+"]")
			}
			block[i].Value, terms[i] = e, &block[i]
		}
		return ast.NewArray(terms...), nil
	}
}

func (c *Codec) mapEncoder(t reflect.Type) encodeFunc {
	elem := c.encoderFor(t.Elem())
	if t.Key().Kind() != reflect.String {
		return func(reflect.Value, int) (ast.Value, error) {
			return nil, &FieldError{Problem: fmt.Sprintf("is a %s, whose keys are not text", t)}
		}
	}
	return func(v reflect.Value, depth int) (ast.Value, error) {
		n := v.Len()
		if n == 0 {
			return ast.InternedEmptyObjectValue, nil
		}
		if depth > maxDepth {
			return nil, &FieldError{Problem: "is nested too deep"}
		}
		block, pairs := make([]ast.Term, 2*n), make([][2]*ast.Term, 0, n)
		for it := v.MapRange(); it.Next(); {
			k := it.Key().String()
			e, err := elem(it.Value(), depth+1)
			if err != nil {
				return nil, prefixPath(err, k)
			}
			pair := block[2*len(pairs):]
			pair[0].Value, pair[1].Value = ast.String(k), e
			pairs = append(pairs, [2]*ast.Term{&pair[0], &pair[1]})
		}
		return ast.NewObject(pairs...), nil
	}
}

func encodeUint(n uint64) ast.Value {
	if n <= math.MaxInt64 {
		return ast.InternedValue(int64(n))
	}
	return ast.UIntNumberTerm(n).Value
}

func encodeFloat(f float64, bits int) (ast.Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, &FieldError{Problem: "is not a finite number"}
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return ast.InternedValue(int64(f)), nil
	}
	return ast.Number(strconv.FormatFloat(f, 'g', -1, bits)), nil
}

func encodeNumber(s string) (ast.Value, error) {
	if !json.Valid([]byte(s)) || (s[0] != '-' && (s[0] < '0' || s[0] > '9')) {
		return nil, &FieldError{Problem: fmt.Sprintf("is %q, which is not a number", s)}
	}
	n, err := ast.NumberChecked(s)
	if err != nil {
		return nil, &FieldError{Problem: fmt.Sprintf("is %q, which is not a number", s)}
	}
	return n, nil
}

func encodeText(v reflect.Value, _ int) (ast.Value, error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return ast.InternedNullValue, nil
	}
	b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return nil, &FieldError{Problem: err.Error()}
	}
	return ast.String(b), nil
}

// encodeJSON is the slow path, for types that implement json.Marshaler.
func encodeJSON(v reflect.Value, _ int) (ast.Value, error) {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, &FieldError{Problem: err.Error()}
	}
	value, err := ast.ValueFromReader(bytes.NewReader(b))
	if err != nil {
		return nil, &FieldError{Problem: err.Error()}
	}
	return value, nil
}
