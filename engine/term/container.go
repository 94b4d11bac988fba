// SPDX-License-Identifier: Apache-2.0

package term

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// forEachElement calls f for the elements of an array, or of a set in its order: a rule with
// `contains`, which makes a set, is accepted as a list.
func forEachElement(v ast.Value, f func(i int, e ast.Value) error) (bool, error) {
	switch v := v.(type) {
	case *ast.Array:
		for i := range v.Len() {
			if err := f(i, v.Elem(i).Value); err != nil {
				return true, err
			}
		}
		return true, nil
	case ast.Set:
		for i, t := range v.Slice() {
			if err := f(i, t.Value); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}

func elementCount(v ast.Value) int {
	switch v := v.(type) {
	case *ast.Array:
		return v.Len()
	case ast.Set:
		return v.Len()
	case ast.Object:
		return v.Len()
	}
	return 0
}

func (c *Codec) sliceDecoder(t reflect.Type) decodeFunc {
	elem := c.decoderFor(t.Elem())
	return func(d *decoding, v ast.Value, into reflect.Value) error {
		n := elementCount(v)
		if err := d.spendNodes(1); err != nil {
			return err
		}
		if err := d.checkRoom(n); err != nil {
			return err
		}
		out := reflect.MakeSlice(t, n, n)
		list, err := forEachElement(v, func(i int, e ast.Value) error {
			if err := elem(d, e, out.Index(i)); err != nil {
				return prefixPath(err, "["+strconv.Itoa(i)+"]")
			}
			return nil
		})
		if err != nil {
			return err
		}
		if !list {
			return wrongType(v, "an array")
		}
		into.Set(out)
		return nil
	}
}

func (c *Codec) mapDecoder(t reflect.Type) decodeFunc {
	elem := c.decoderFor(t.Elem())
	if t.Key().Kind() != reflect.String {
		return func(*decoding, ast.Value, reflect.Value) error {
			return &FieldError{Problem: "is to be a map whose keys are not text"}
		}
	}
	return func(d *decoding, v ast.Value, into reflect.Value) error {
		o, ok := v.(ast.Object)
		if !ok {
			return wrongType(v, "an object")
		}
		if err := d.spendNodes(1); err != nil {
			return err
		}
		if err := d.checkRoom(o.Len()); err != nil {
			return err
		}
		out := reflect.MakeMapWithSize(t, o.Len())
		err := o.Iter(func(k, e *ast.Term) error {
			key, err := d.fieldName(k.Value)
			if err != nil {
				return err
			}
			val := reflect.New(t.Elem()).Elem()
			if err := elem(d, e.Value, val); err != nil {
				return prefixPath(err, key)
			}
			out.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), val)
			return nil
		})
		if err != nil {
			return err
		}
		into.Set(out)
		return nil
	}
}

func (c *Codec) structDecoder(t reflect.Type) decodeFunc {
	plan := c.structPlan(t)
	decoders := make(map[string]decodeFunc, len(plan.fields))
	required := 0
	for i := range plan.fields {
		f := &plan.fields[i]
		decoders[f.name] = c.decoderFor(f.typ)
		if !f.isOptional() {
			required++
		}
	}
	return func(d *decoding, v ast.Value, into reflect.Value) error {
		o, ok := v.(ast.Object)
		if !ok {
			return wrongType(v, "an object")
		}
		if err := d.spendNodes(1); err != nil {
			return err
		}
		found := 0
		err := o.Iter(func(k, e *ast.Term) error {
			name, _ := k.Value.(ast.String)
			f := plan.byName[string(name)]
			if f == nil {
				name, err := d.fieldName(k.Value)
				if err != nil {
					return err
				}
				return &FieldError{Path: name, Problem: "is not a field of the answer, which has " + plan.String()}
			}
			if !f.isOptional() {
				found++
			}
			target, err := f.settableField(into)
			if err != nil {
				return prefixPath(err, f.name)
			}
			if err := decoders[f.name](d, e.Value, target); err != nil {
				return prefixPath(err, f.name)
			}
			return nil
		})
		if err != nil || found == required {
			return err
		}
		for i := range plan.fields {
			if f := &plan.fields[i]; !f.isOptional() && o.Get(f.key) == nil {
				return &FieldError{Path: f.name, Problem: "is missing from the answer"}
			}
		}
		return nil
	}
}

// settableField finds the field in a struct to be filled, making embedded pointers.
func (f *field) settableField(v reflect.Value) (reflect.Value, error) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return v, &FieldError{Problem: "is in an embedded pointer that cannot be set"}
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, nil
}

// decodeKeys decodes the sort keys of many pods: one allocation for all of
// them where they are of one length, and no reflection.
func decodeKeys(d *decoding, v ast.Value, into reflect.Value) error {
	n := elementCount(v)
	if err := d.spendNodes(1 + n); err != nil {
		return err
	}
	rows := make([][]float64, n)
	var flat []float64
	list, err := forEachElement(v, func(i int, e ast.Value) error {
		row, ok := e.(*ast.Array)
		if !ok {
			return prefixPath(wrongType(e, "an array of numbers"), "["+strconv.Itoa(i)+"]")
		}
		m := row.Len()
		if err := d.spendNodes(m); err != nil {
			return err
		}
		if cap(flat)-len(flat) < m {
			flat = make([]float64, 0, min(m*(n-i), m+d.left))
		}
		from := len(flat)
		for j := range m {
			f, err := floatValue(row.Elem(j).Value)
			if err != nil {
				return prefixPath(prefixPath(err, "["+strconv.Itoa(j)+"]"), "["+strconv.Itoa(i)+"]")
			}
			flat = append(flat, f)
		}
		rows[i] = flat[from:len(flat):len(flat)]
		return nil
	})
	if err != nil {
		return err
	}
	if !list {
		return wrongType(v, "an array of arrays of numbers")
	}
	into.Set(reflect.ValueOf(rows))
	return nil
}

// plainValue converts a value to the types of encoding/json, with json.Number for numbers, so that no
// number is converted to a float.
func plainValue(d *decoding, v ast.Value) (any, error) {
	if err := d.spendNodes(1); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case ast.Null:
		return nil, nil
	case ast.Boolean:
		return bool(v), nil
	case ast.Number:
		return json.Number(v), d.spendText(string(v))
	case ast.String:
		return string(v), d.spendText(string(v))
	case *ast.Array, ast.Set:
		if err := d.checkRoom(elementCount(v)); err != nil {
			return nil, err
		}
		out := make([]any, elementCount(v))
		_, err := forEachElement(v, func(i int, e ast.Value) (err error) {
			if out[i], err = plainValue(d, e); err != nil {
				return prefixPath(err, "["+strconv.Itoa(i)+"]")
			}
			return nil
		})
		return out, err
	case ast.Object:
		if err := d.checkRoom(v.Len()); err != nil {
			return nil, err
		}
		out := make(map[string]any, v.Len())
		err := v.Iter(func(k, e *ast.Term) error {
			key, err := d.fieldName(k.Value)
			if err != nil {
				return err
			}
			x, err := plainValue(d, e.Value)
			if err != nil {
				return prefixPath(err, key)
			}
			out[key] = x
			return nil
		})
		return out, err
	}
	return nil, wrongType(v, "a JSON value")
}
