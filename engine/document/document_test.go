// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/document"
)

func TestWhatIsWrongWithJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		row, col int
		want     string // nothing is wrong if it is empty
	}{
		"a value":                              {`{"a": [1, {"b": 2}]}`, 0, 0, ""},
		"tabs":                                 {"{\n\t\"a\": 1\n}", 0, 0, ""},
		"a character of two escapes":           {`{"a": "\ud83d\ude00 \/"}`, 0, 0, ""},
		"a key that is longer than YAML's":     {`{"` + strings.Repeat("k", 2000) + `": 1}`, 0, 0, ""},
		"the same key in two objects":          {`{"a": {"x": 1}, "b": {"x": 1}}`, 0, 0, ""},
		"nothing":                              {"", 1, 1, "it is empty"},
		"white space":                          {" \n", 1, 2, "it is empty"},
		"what editors of Windows put in front": {"\uFEFF{}", 1, 1, "it begins with a byte order mark"},
		"a comma too many":                     {"{\n  \"a\": 1,,\n}", 2, 10, "invalid character ','"},
		"an end too early":                     {"{\n  \"a\": 1", 2, 8, "unexpected end of JSON input"},
		"a second value":                       {`{} {}`, 1, 4, "invalid character '{' after top-level value"},
		"YAML":                                 {"a: 1", 1, 1, "invalid character 'a'"},
		"a key twice":                          {`{"a": 1, "a": 2}`, 1, 1, `duplicate field "a"`},
		"a key twice, below":                   {`{"x": [{"a": 1, "a": 2}]}`, 1, 1, `duplicate field "x[0].a"`},
		"a key twice that is escaped once":     {`{"a": 1, "\u0061": 2}`, 1, 1, `duplicate field "a"`},
		"keys that differ in their case only":  {`{"a": 1, "A": 2}`, 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, document.CheckJSON([]byte(tc.text)), tc.row, tc.col, tc.want) })
	}
}

func TestWhatIsWrongWithYAML(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		row  int
		want string
	}{
		"a value":                       {"a: 1\nb: [2]\n", 0, ""},
		"a document with a beginning":   {"# why\n---\na: 1\n", 0, ""},
		"a document with an end":        {"a: 1\n---\n# more\n", 0, ""},
		"two documents":                 {"a: 1\n---\nb: 1\n", 2, "there is a second document"},
		"dashes in a text":              {"a: |\n  x\n  ---\n  y\n", 0, ""},
		"a list that is not closed":     {"a: 1\nb: [\n", 2, "did not find expected node content"},
		"a key twice":                   {"a: 1\nb: 1\na: 2\n", 3, `key "a" already set in map`},
		"two keys twice":                {"a: 1\na: 1\nb: 2\nb: 2\n", 2, `key "a" already set in map; line 4: key "b" already set in map`},
		"a tab in front of a key":       {"a:\n\tb: 1\n", 2, "found character that cannot start any token"},
		"an empty one, which is null's": {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := document.FromYAML([]byte(tc.text))
			expect(t, err, tc.row, 1, tc.want)
		})
	}
}

func TestWhatIsOfAnotherType(t *testing.T) {
	type inner struct {
		Count int      `json:"count"`
		Size  uint     `json:"size"`
		Share float64  `json:"share"`
		Names []string `json:"names"`
	}
	var into struct {
		Name  string            `json:"name"`
		On    *bool             `json:"on"`
		Inner inner             `json:"inner"`
		Tags  map[string]string `json:"tags"`
	}
	for name, tc := range map[string]struct {
		text     string
		row, col int
		want     string
	}{
		"a number for a text":             {`{"name": 1}`, 1, 10, "name is a number, and must be a string"},
		"a text for a number":             {"{\"inner\": {\n\"count\": \"3\"}}", 2, 12, "inner.count is a string, and must be an integer"},
		"a part of a number":              {`{"inner": {"count": 1.5}}`, 1, 23, "inner.count is the number 1.5, and must be an integer"},
		"less than nothing":               {`{"inner": {"size": -1}}`, 1, 21, "inner.size is the number -1, and must be an integer of at least 0"},
		"true for a number":               {`{"inner": {"share": true}}`, 1, 24, "inner.share is true or false, and must be a number"},
		"an object for a list":            {`{"inner": {"names": {}}}`, 1, 21, "inner.names is an object, and must be a list"},
		"a list for an object":            {`{"tags": []}`, 1, 10, "tags is a list, and must be an object"},
		"a text for true or false":        {`{"on": "yes"}`, 1, 12, "on is a string, and must be true or false"},
		"a list for the whole":            {`[]`, 1, 1, "it is a list, and must be an object"},
		"a field that is not there":       {`{"nam": 1}`, 1, 1, `unknown field "nam"`},
		"a stream that ends in an object": {`{"name": "x"`, 1, 13, "it ends too early"},
		"a stream that is empty":          {``, 1, 1, "it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			dec := json.NewDecoder(bytes.NewReader([]byte(tc.text)))
			dec.DisallowUnknownFields()
			expect(t, document.ExplainError([]byte(tc.text), dec.Decode(&into)), tc.row, tc.col, tc.want)
		})
	}
}

func expect(t *testing.T, err error, row, col int, want string) {
	t.Helper()
	var got document.Error
	if errors.As(err, &got) != (want != "") {
		t.Fatalf("got %v, want %q", err, want)
	}
	if want != "" && (got.Row != row || got.Col != col || !strings.HasPrefix(got.Message, want)) {
		t.Errorf("got %d:%d %s, want %d:%d %s", got.Row, got.Col, got.Message, row, col, want)
	}
}
