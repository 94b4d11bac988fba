// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/regatta-sh/regatta/engine/document"
)

// readValue reads the value of a change for a fact of a type. Its text is JSON, or else a text without quotes. For a fact
// that is a text, it is the text itself unless it is in quotes, since labels have values such as 1 and true. A time that
// is in nanoseconds may be written as in RFC 3339.
func (c Change) readValue(t reflect.Type) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	text := []byte(c.value)
	valid := json.Valid(text)
	switch {
	case t.Kind() == reflect.String && valid && bytes.HasPrefix(bytes.TrimSpace(text), []byte(`"`)):
	case t.Kind() == reflect.String, !valid:
		if c.fact == "now" && t.Kind() == reflect.Int64 {
			at, ok := parseInstant(c.value)
			if !ok {
				return nil, fmt.Errorf("now is %q, and must be nanoseconds since 1970 or a time such as 2026-12-24T10:00:00Z", c.value)
			}
			return json.Marshal(at)
		}
		quoted, err := json.Marshal(c.value)
		if err != nil {
			return nil, err
		}
		text = quoted
	}
	return text, checkType(c.fact, t, text)
}

// parseInstant reads a time as nanoseconds since 1970; false if it is none, or too far away.
func parseInstant(text string) (int64, bool) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return 0, false
	}
	return at.UnixNano(), true
}

// decodeStrictly decodes JSON without unknown fields. An error describes it in the terms of users.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return document.ExplainError(nil, err)
	}
	return nil
}
