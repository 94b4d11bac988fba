package convert

import (
	"encoding/json"
	"fmt"
)

type fields = map[string]json.RawMessage

// take parts an object from the opaque fields of its spec.
func take(raw []byte, opaque []string) (rest []byte, kept fields, err error) {
	object, spec, err := specOf(raw)
	if err != nil || spec == nil || len(opaque) == 0 {
		return raw, nil, err
	}
	kept = fields{}
	for _, name := range opaque {
		if value, ok := spec[name]; ok {
			kept[name] = value
			delete(spec, name)
		}
	}
	rest, err = withSpec(object, spec)
	return rest, kept, err
}

// put gives an object the opaque fields of its spec back. What encoding made of those it had not goes.
func put(raw []byte, kept fields, opaque []string) ([]byte, error) {
	object, spec, err := specOf(raw)
	if err != nil || spec == nil || len(opaque) == 0 {
		return raw, err
	}
	for _, name := range opaque {
		if value, ok := kept[name]; ok {
			spec[name] = value
		} else {
			delete(spec, name)
		}
	}
	return withSpec(object, spec)
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
