// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"strings"
)

type fields = map[string]json.RawMessage

// extractOpaque separates the opaque fields of the spec from an object. A field is a path such as
// template.jobTemplate.
func extractOpaque(raw []byte, opaque []string) (rest []byte, kept fields, err error) {
	object, spec, err := specOf(raw)
	if err != nil || spec == nil || len(opaque) == 0 {
		return raw, nil, err
	}
	kept = fields{}
	for _, path := range opaque {
		if err := changeField(spec, path, func(parent fields, name string) {
			if value, ok := parent[name]; ok {
				kept[path] = value
				delete(parent, name)
			}
		}); err != nil {
			return nil, nil, err
		}
	}
	rest, err = withSpec(object, spec)
	return rest, kept, err
}

// restoreOpaque puts the opaque fields back into the spec of an object. It removes empty fields that the encoder
// wrote for missing ones.
func restoreOpaque(raw []byte, kept fields, opaque []string) ([]byte, error) {
	object, spec, err := specOf(raw)
	if err != nil || spec == nil || len(opaque) == 0 {
		return raw, err
	}
	for _, path := range opaque {
		if err := changeField(spec, path, func(parent fields, name string) {
			if value, ok := kept[path]; ok {
				parent[name] = value
			} else {
				delete(parent, name)
			}
		}); err != nil {
			return nil, err
		}
	}
	return withSpec(object, spec)
}

// changeField changes the field at a path. If the object above the field is missing, it changes nothing.
func changeField(object fields, path string, change func(parent fields, name string)) error {
	name, below, deep := strings.Cut(path, ".")
	if !deep {
		change(object, name)
		return nil
	}
	if len(object[name]) == 0 {
		return nil
	}
	var child fields
	if err := json.Unmarshal(object[name], &child); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if child == nil {
		return nil
	}
	if err := changeField(child, below, change); err != nil {
		return err
	}
	encoded, err := json.Marshal(child)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	object[name] = encoded
	return nil
}

func specOf(raw []byte) (object, spec fields, err error) {
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, nil, fmt.Errorf("reading the object: %w", err)
	}
	if len(object["spec"]) == 0 {
		return object, nil, nil
	}
	if err := json.Unmarshal(object["spec"], &spec); err != nil {
		return nil, nil, fmt.Errorf("reading the spec: %w", err)
	}
	return object, spec, nil
}

func withSpec(object, spec fields) ([]byte, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("writing the spec: %w", err)
	}
	object["spec"] = encoded
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the object: %w", err)
	}
	return raw, nil
}
