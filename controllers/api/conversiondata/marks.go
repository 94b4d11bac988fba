// SPDX-License-Identifier: Apache-2.0

// Package conversiondata keeps in labels and annotations what one version of an API can
// say and the other cannot, so that an object comes back from a conversion as it
// was.
package conversiondata

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	// NewerKey annotates a v1alpha1 object with what only v1beta1 has fields for,
	// as JSON. A client that writes v1alpha1 hands it back unread.
	NewerKey = "conversion.regatta.sh/v1beta1"
	// OlderKey annotates a v1beta1 object with what only v1alpha1 has fields for.
	OlderKey = "conversion.regatta.sh/v1alpha1"
)

// SetMetadata sets a label or an annotation.
func SetMetadata(marks *map[string]string, key, value string) {
	if *marks == nil {
		*marks = map[string]string{}
	}
	(*marks)[key] = value
}

// RemoveMetadata leaves no empty map behind, so that a mark that came by conversion goes
// without a trace.
func RemoveMetadata(marks *map[string]string, key string) {
	if _, ok := (*marks)[key]; !ok {
		return
	}
	delete(*marks, key)
	if len(*marks) == 0 {
		*marks = nil
	}
}

// StoreFields writes a struct of fields into an annotation; none if all are empty, by
// omitempty or omitzero.
func StoreFields(annotations *map[string]string, key string, fields any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("keeping %T in annotation %s: %w", fields, key, err)
	}
	if bytes.Equal(text, []byte("{}")) {
		RemoveMetadata(annotations, key)
		return nil
	}
	SetMetadata(annotations, key, string(text))
	return nil
}

// RestoreFields reads what Keep wrote into a pointer, and removes the annotation. One that
// cannot be read says nothing and stays where it is.
func RestoreFields[T any](annotations *map[string]string, key string, fields *T) bool {
	text, ok := (*annotations)[key]
	if !ok {
		return false
	}
	var read T // half of what cannot be read is nothing, too
	if json.Unmarshal([]byte(text), &read) != nil {
		return false
	}
	*fields = read
	RemoveMetadata(annotations, key)
	return true
}
