// SPDX-License-Identifier: Apache-2.0

// Package document reads JSON and YAML that people wrote, and says what is wrong
// with it, and where, in words of theirs: those of encoding/json name types of Go.
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

// Error is what is wrong with a document, and where as far as that is known: its
// first place otherwise.
type Error struct {
	Row, Col int
	Message  string
}

func (e Error) Error() string { return e.Message }

// FromYAML makes JSON of one document of YAML, in which no key is there twice.
// What is wrong is an Error.
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

// CheckJSON is an Error if a text is not one value of JSON, or if an object in it
// has a key twice. It is not for YAML, which reads strings of JSON in another way.
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

// ExplainError makes an Error of what encoding/json or a reader of YAML says of a text,
// which is nil where the places of the error are not those of what people wrote.
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

// describeFound is a value of JSON as encoding/json calls it, in words.
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

// describeWanted is a type of Go as JSON has it.
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

// extractRow takes the row out of a message in which readers of YAML have it, and
// what only says which reader it was.
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
