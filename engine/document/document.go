// SPDX-License-Identifier: Apache-2.0

// Package document reads JSON and YAML that users wrote, and explains errors and their places in the
// users' terms: the errors of encoding/json name Go types.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Error is an error in a document, with its position if it is known, and otherwise that of the
// beginning.
type Error struct {
	Row, Col int
	Message  string
}

func (e Error) Error() string { return e.Message }

// FromYAML converts one YAML document, in which no key may be repeated, to JSON. Errors are of type
// Error.
func FromYAML(text []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, ExplainError(nil, err)
	}
	if row := secondDocumentRow(text); row > 0 {
		return nil, Error{row, 1, "there is a second document, and it would not be read"}
	}
	return out, nil
}

// secondDocumentRow is the row at which a second document begins; 0 if there is none.
func secondDocumentRow(text []byte) (row int) {
	documents, begins := 0, true
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case line == "---" || strings.HasPrefix(line, "--- "):
			begins, row = true, i+1
		case line != "" && line[0] != '#' && line[0] != '%' && begins:
			if documents++; documents == 2 {
				return row
			}
			begins = false
		}
	}
	return 0
}

// CheckJSON returns an Error if a text is not one JSON value, or if an object in it repeats a key. It
// is not for YAML, which reads JSON strings differently.
func CheckJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return ExplainError(text, err)
	}
	twice, err := kjson.UnmarshalStrict(text, &v, kjson.DisallowDuplicateFields)
	if err := errors.Join(append(twice, err)...); err != nil {
		return ExplainError(text, err)
	}
	return nil
}

// ExplainError converts an error of encoding/json or of a YAML reader to an Error. text is nil if the
// positions of the error are not those in the user's source.
func ExplainError(text []byte, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	out := Error{Row: 1, Col: 1, Message: err.Error()}
	switch {
	case errors.Is(err, io.EOF):
		out.Message = "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.Row, out.Col = textPosition(text, int64(len(text)))
		out.Message = "it ends too early"
	case errors.As(err, &syntax):
		out.Row, out.Col = textPosition(text, syntax.Offset-1)
		out.Message = syntax.Error()
		switch {
		case text != nil && len(bytes.TrimSpace(text)) == 0:
			out.Message = "it is empty"
		case bytes.HasPrefix(text, []byte("\uFEFF")):
			out.Message = "it begins with a byte order mark, which JSON does not have: save it as UTF-8 without one"
		}
	case errors.As(err, &wrong):
		out.Row, out.Col = textPosition(text, wrong.Offset-1)
		field := wrong.Field
		if field == "" {
			field = "it"
		}
		out.Message = fmt.Sprintf("%s is %s, and must be %s", field, describeFound(wrong.Value), describeWanted(wrong.Type))
	default:
		out.Row, out.Message = extractRow(err.Error())
	}
	return out
}

// textPosition is the row and the column of a byte, both from 1.
func textPosition(text []byte, offset int64) (row, col int) {
	before := text[:min(max(offset, 0), int64(len(text)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// describeFound describes a JSON value by its name in encoding/json.
func describeFound(value string) string {
	kind, literal, _ := strings.Cut(value, " ")
	switch {
	case literal != "":
		return "the " + value
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "bool":
		return "true or false"
	}
	return "a " + kind
}

// describeWanted describes a Go type in JSON's terms.
func describeWanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describeWanted(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer of at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a " + t.Kind().String()
}

// extractRow removes from a message of a YAML reader the row and the name of the reader.
func extractRow(message string) (row int, rest string) {
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: ", "yaml: ", "unmarshal errors:"} {
		message = strings.TrimPrefix(message, prefix)
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	row = 1
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
		m := regexp.MustCompile(`^line (\d+): (.+)$`).FindStringSubmatch(lines[i])
		if m != nil && i == 0 {
			row, _ = strconv.Atoi(m[1])
			lines[i] = m[2]
		}
	}
	return row, strings.Join(lines, "; ")
}
