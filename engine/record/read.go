// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/document"
)

// maxLine and maxObjects bound a record that is read, in bytes and in JSON objects: a pod takes two bytes at least, and a hundred times
// as many in memory.
const (
	maxLine    = 64 << 20
	maxObjects = 200_000
)

// Read reads lines back, with inputs and answers of the types of their points. Records of unknown
// points and unknown fields are left out: lines may be those of an OPA that made other decisions.
// Records of shadows are left out too, since no controller acted on them.
func Read(from io.Reader) ([]decision.Record, error) {
	var out []decision.Record
	err := ReadEach(from, func(r decision.Record) { out = append(out, r) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ReadEach is Read for files that may be larger than the memory: it calls each with one record after the other, in the order of the lines.
func ReadEach(from io.Reader, each func(decision.Record)) error {
	return ReadEachLine(from, func(l Line) error {
		if l.Skipped == "" {
			each(l.Record)
		}
		return nil
	})
}

// Line is a line with a record.
type Line struct {
	// Text is the line without its end. It is valid until the function that it was given to returns.
	Text []byte
	// Record is what the line says, if it is not skipped.
	Record decision.Record
	// Skipped says why the line is left out; empty if it is not.
	Skipped string
}

// ReadEachLine is ReadEach for callers that want the text of each line, and those that Read leaves out, too. An error of each ends the
// reading, and is returned as it is.
func ReadEachLine(from io.Reader, each func(Line) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\uFEFF"))) // some editors begin a file so
		if len(text) == 0 {
			continue
		}
		r, skipped, err := parseLine(text)
		if err != nil {
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		if err := each(Line{text, r, skipped}); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("reading line %d: it is longer than %d MiB", n, maxLine>>20)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	return nil
}

// parseLine reads one line; skipped says why it is left out: its point is not known, or no controller acted on it.
func parseLine(text []byte) (r decision.Record, skipped string, err error) {
	if n := bytes.Count(text, []byte("{")); n > maxObjects {
		return r, "", fmt.Errorf("it has %d objects, and may have %d", n, maxObjects)
	}
	var l struct {
		line
		Path   string          `json:"path"`
		Input  json.RawMessage `json:"input"`
		Result json.RawMessage `json:"result"`
		Erased []string        `json:"erased"`
		// Metrics and errors of other writers may have any form.
		Metrics map[string]json.RawMessage `json:"metrics"`
		Error   json.RawMessage            `json:"error"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return r, "", explainUnreadable(text, err)
	}
	if l.Shadow != "" {
		return r, "the decision is of a bundle in shadow", nil
	}
	if l.Path == "" {
		return r, "", errors.New("it has no path, so it is no line of a decision log")
	}
	p, ok := catalog.FindPoint(decision.Name(strings.TrimPrefix(l.Path, "/")))
	if !ok {
		return r, "no point has the name of its path", nil
	}
	r = decision.Record{
		Time: l.Timestamp, Point: p.Name, Subject: l.Subject, Outcome: l.Outcome, Revision: l.Revision,
		Bundles: idsOf(l.Bundles), Rules: l.Rules, Error: errorMessage(l.Error), Masked: append(l.Masked, l.Erased...),
	}
	r.Origin, r.ID = parseID(l.DecisionID)
	var ns int64
	if json.Unmarshal(l.Metrics[durationMetric], &ns) == nil {
		r.Duration = time.Duration(ns)
	}
	switch {
	case r.Outcome != "":
	case r.Error != "":
		r.Outcome = decision.Failed
	default:
		r.Outcome = decision.Decided
	}
	if r.Input, err = decodeTyped(l.Input, p.In); err != nil {
		return r, "", fmt.Errorf("the input: %w", err)
	}
	if r.Output, err = decodeTyped(l.Result, p.Out); err != nil {
		return r, "", fmt.Errorf("the result: %w", err)
	}
	return r, "", nil
}

// explainUnreadable says why a line is no record.
func explainUnreadable(text []byte, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		wrong.Field = strings.TrimPrefix(wrong.Field, "line.") // that is a struct of ours
	}
	switch {
	case bytes.HasPrefix(text, []byte{0x1f, 0x8b}):
		return errors.New("it is compressed; unpack it first, such as with gunzip")
	case text[0] == '[' && json.Valid(text):
		return errors.New("it is a list, and each record has a line of its own; jq -c '.[]' makes lines of a list")
	}
	return document.ExplainError(text, err)
}

// errorMessage is the message of an error, which may be an object with a message or a text.
func errorMessage(text json.RawMessage) string {
	if len(text) == 0 || string(text) == "null" {
		return ""
	}
	var p Problem
	var s string
	switch {
	case json.Unmarshal(text, &p) == nil && p.Message != "":
		return p.Message
	case json.Unmarshal(text, &s) == nil:
		return s
	}
	return string(text)
}

func idsOf(bundles map[string]Bundle) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		if b := bundles[name]; b.Revision != "" {
			name += "@" + b.Revision
		}
		out = append(out, name)
	}
	return out
}

func decodeTyped(text json.RawMessage, t reflect.Type) (any, error) {
	v := reflect.New(t)
	if len(text) > 0 {
		if err := json.Unmarshal(text, v.Interface()); err != nil {
			return nil, document.ExplainError(nil, err)
		}
	}
	return v.Elem().Interface(), nil
}
