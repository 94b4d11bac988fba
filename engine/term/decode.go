// SPDX-License-Identifier: Apache-2.0

package term

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

type decodeFunc func(d *decoding, v ast.Value, into reflect.Value) error

// decoding counts the remaining nodes and bytes of an answer. Since it counts while decoding, a result
// with shared parts, which is small only until it is expanded, is never expanded beyond the limits.
type decoding struct {
	left, bytes int
	max         Limits
}

func (d *decoding) spendNodes(n int) error {
	if d.left -= n; d.left < 0 {
		return TooLargeError{Of: "nodes", Size: d.max.Nodes - d.left, Limit: d.max.Nodes}
	}
	return nil
}

// checkRoom checks the limit for nodes that are not decoded yet, before anything is allocated for
// them.
func (d *decoding) checkRoom(n int) error {
	if n > d.left {
		return TooLargeError{Of: "nodes", Size: d.max.Nodes - d.left + n, Limit: d.max.Nodes}
	}
	return nil
}

// spendText spends the bytes of a text.
func (d *decoding) spendText(text string) error {
	if len(text) > d.max.Text {
		return &FieldError{Problem: fmt.Sprintf("has %d bytes, and a text of an answer may have %d", len(text), d.max.Text)}
	}
	if d.bytes -= len(text); d.bytes < 0 {
		return TooLargeError{Of: "bytes of text", Size: d.max.Bytes - d.bytes, Limit: d.max.Bytes}
	}
	return nil
}

// fieldName spends the bytes of the name of a field. A name that is too long is not repeated in the
// error.
func (d *decoding) fieldName(k ast.Value) (string, error) {
	name, ok := k.(ast.String)
	if !ok {
		return "", &FieldError{Problem: "has a key that is " + describeType(k) + ", want a string"}
	}
	if err := d.spendText(string(name)); err != nil {
		return "", prefixPath(err, "the name of a field")
	}
	return string(name), nil
}

func (c *Codec) decoderFor(t reflect.Type) decodeFunc {
	if f, ok := c.decoders.Load(t); ok {
		return f.(decodeFunc)
	}
	var made sync.WaitGroup // as in encoder
	var f decodeFunc
	made.Add(1)
	early, known := c.decoders.LoadOrStore(t, decodeFunc(func(d *decoding, v ast.Value, into reflect.Value) error {
		made.Wait()
		return f(d, v, into)
	}))
	if known {
		return early.(decodeFunc)
	}
	f = c.newDecoder(t)
	made.Done()
	c.decoders.Store(t, f)
	return f
}

func (c *Codec) newDecoder(t reflect.Type) decodeFunc {
	switch t {
	case reflect.TypeFor[[][]float64]():
		return decodeKeys
	case reflect.TypeFor[*ast.Term]():
		return func(d *decoding, v ast.Value, into reflect.Value) error {
			into.Set(reflect.ValueOf(ast.NewTerm(v)))
			return nil
		}
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return decodeJSON
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return decodeText
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.String:
		return decodeString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float32, reflect.Float64:
		return decodeFloat
	case reflect.Struct:
		return c.structDecoder(t)
	case reflect.Map:
		return c.mapDecoder(t)
	case reflect.Slice:
		return c.sliceDecoder(t)
	case reflect.Pointer:
		return c.pointerDecoder(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return decodeAny
		}
	}
	return func(*decoding, ast.Value, reflect.Value) error {
		return &FieldError{Problem: fmt.Sprintf("is to be a %s, which no policy can answer", t)}
	}
}

func decodeBool(d *decoding, v ast.Value, into reflect.Value) error {
	b, ok := v.(ast.Boolean)
	if !ok {
		return wrongType(v, "a boolean")
	}
	into.SetBool(bool(b))
	return d.spendNodes(1)
}

func decodeString(d *decoding, v ast.Value, into reflect.Value) error {
	s, ok := v.(ast.String)
	if !ok {
		return wrongType(v, "a string")
	}
	if err := d.spendText(string(s)); err != nil {
		return err
	}
	into.SetString(string(s))
	return d.spendNodes(1)
}

func decodeFloat(d *decoding, v ast.Value, into reflect.Value) error {
	f, err := floatValue(v)
	if err != nil {
		return err
	}
	into.SetFloat(f)
	return d.spendNodes(1)
}

func decodeAny(d *decoding, v ast.Value, into reflect.Value) error {
	x, err := plainValue(d, v)
	if err == nil && x != nil {
		into.Set(reflect.ValueOf(x))
	}
	return err
}

func (c *Codec) pointerDecoder(t reflect.Type) decodeFunc {
	elem := c.decoderFor(t.Elem())
	return func(d *decoding, v ast.Value, into reflect.Value) error {
		if _, null := v.(ast.Null); null {
			into.SetZero()
			return d.spendNodes(1)
		}
		p := reflect.New(t.Elem())
		into.Set(p)
		return elem(d, v, p.Elem())
	}
}

func wrongType(v ast.Value, want string) error {
	return &FieldError{Problem: "is " + describeType(v) + ", want " + want}
}

func describeType(v ast.Value) string {
	switch v.(type) {
	case ast.Null:
		return "null"
	case ast.Boolean:
		return "a boolean"
	case ast.Number:
		return "a number"
	case ast.String:
		return "a string"
	case *ast.Array:
		return "an array"
	case ast.Set:
		return "a set"
	case ast.Object:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}

func floatValue(v ast.Value) (float64, error) {
	n, ok := v.(ast.Number)
	if !ok {
		return 0, wrongType(v, "a number")
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return 0, &FieldError{Problem: "is a number out of range"}
	}
	return f, nil
}

func decodeInt(d *decoding, v ast.Value, into reflect.Value) error {
	n, ok := v.(ast.Number)
	if !ok {
		return wrongType(v, "a whole number")
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		// 3.0 and 3e2 are whole numbers too.
		f, err := strconv.ParseFloat(string(n), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return &FieldError{Problem: "is not a whole number that fits"}
		}
		i = int64(f)
	}
	if into.OverflowInt(i) {
		return &FieldError{Problem: "is not a whole number that fits"}
	}
	into.SetInt(i)
	return d.spendNodes(1)
}

func decodeUint(d *decoding, v ast.Value, into reflect.Value) error {
	n, ok := v.(ast.Number)
	if !ok {
		return wrongType(v, "a whole number of 0 or more")
	}
	u, err := strconv.ParseUint(string(n), 10, 64)
	if err != nil || into.OverflowUint(u) {
		return &FieldError{Problem: "is not a whole number of 0 or more that fits"}
	}
	into.SetUint(u)
	return d.spendNodes(1)
}

func decodeText(d *decoding, v ast.Value, into reflect.Value) error {
	s, ok := v.(ast.String)
	if !ok {
		return wrongType(v, "a string")
	}
	if err := d.spendText(string(s)); err != nil {
		return err
	}
	if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return &FieldError{Problem: "is not understood: " + err.Error()}
	}
	return d.spendNodes(1)
}

func decodeJSON(d *decoding, v ast.Value, into reflect.Value) error {
	x, err := plainValue(d, v)
	if err != nil {
		return err
	}
	b, err := json.Marshal(x)
	if err != nil {
		return &FieldError{Problem: "is not understood: " + err.Error()}
	}
	if err := json.Unmarshal(b, into.Addr().Interface()); err != nil {
		return &FieldError{Problem: "is not understood: " + err.Error()}
	}
	return nil
}
