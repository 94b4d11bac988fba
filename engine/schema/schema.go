// SPDX-License-Identifier: Apache-2.0

// Package schema describes the inputs and answers of decision points as JSON schemas, made from the Go
// types of the contract, which are the only source.
package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// ReflectType makes the schema of a type. Types are expanded in place, without references, because
// OPA's type checker and users read a schema from the top down.
func ReflectType(t reflect.Type, opts ...Option) (*jsonschema.Schema, error) {
	r := &jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	for _, o := range opts {
		if err := o(r); err != nil {
			return nil, err
		}
	}
	s := r.ReflectFromType(t)
	s.Version = "http://json-schema.org/draft-07/schema#" // the latest that OPA reads
	return s, nil
}

// Option changes what is in a schema.
type Option func(*jsonschema.Reflector) error

// WithComments takes descriptions from the comments of the Go source of a
// package in a folder.
func WithComments(module, folder string) Option {
	return func(r *jsonschema.Reflector) error {
		if err := r.AddGoComments(module, folder); err != nil {
			return fmt.Errorf("reading comments: %w", err)
		}
		return nil
	}
}

// DomainInput is the schema of the input that a user's package of a domain may refer to. Such a
// package, for example extend.rollout.freeze, is evaluated at several points, each with its own input.
// So it may refer to the fields of any of them; a reference that no input has is an error.
func DomainInput(domain string) (any, error) {
	var all []any
	for _, p := range catalog.All() {
		if p.Name.Domain() != domain {
			continue
		}
		s, err := schemaDocument(p.In)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("describing the input of %s: there is no such domain", domain)
	}
	return map[string]any{"anyOf": all}, nil
}

// schemaDocument returns a schema as a document, which is the form that OPA requires.
func schemaDocument(t reflect.Type) (any, error) {
	s, err := ReflectType(t)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", t, err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("describing %s: %w", t, err)
	}
	return out, nil
}

// PointFiles returns the schemas of all points, by path below policies/schemas.
func PointFiles(opts ...Option) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, p := range catalog.All() {
		for side, t := range map[string]reflect.Type{"input": p.In, "output": p.Out} {
			s, err := ReflectType(t, opts...)
			if err != nil {
				return nil, err
			}
			s.Title = fmt.Sprintf("%s: %s", p.Name, side)
			text, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				return nil, fmt.Errorf("describing the %s of %s: %w", side, p.Name, err)
			}
			out[fmt.Sprintf("%s.%s.json", p.Name, side)] = append(text, '\n')
		}
	}
	return out, nil
}

// Write writes the schemas into a folder.
func Write(folder string, opts ...Option) error {
	files, err := PointFiles(opts...)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing schemas: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("writing schemas: %w", err)
		}
	}
	return nil
}
