// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

// line is a record as it is written, without the input and the answer, which are appended in their
// encoded form.
type line struct {
	DecisionID string            `json:"decision_id"`
	Timestamp  time.Time         `json:"timestamp"`
	Labels     map[string]string `json:"labels,omitempty"`
	Path       decision.Name     `json:"path"`
	Subject    decision.Subject  `json:"subject"`
	Outcome    decision.Outcome  `json:"outcome"`
	Revision   string            `json:"revision,omitempty"`
	Bundles    map[string]Bundle `json:"bundles,omitempty"`
	Rules      []string          `json:"rules,omitempty"`
	Error      *Problem          `json:"error,omitempty"`
	Metrics    map[string]int64  `json:"metrics,omitempty"`
	Masked     []string          `json:"masked,omitempty"`
	// Shadow names the bundle in shadow that made the decision. No controller acted on it.
	Shadow string `json:"shadow,omitempty"`
}

// Bundle describes a bundle in a line.
type Bundle struct {
	Revision string `json:"revision"`
}

// Problem says why there was no decision.
type Problem struct {
	// Code is the outcome: Undefined, Error or Timeout.
	Code    decision.Outcome `json:"code"`
	Message string           `json:"message"`
}

// durationMetric is OPA's name, as a library, for the total time of a decision.
const durationMetric = "timer_sdk_decision_eval_ns"

// Encoder writes records as lines.
type Encoder struct {
	origin string
	labels map[string]string
	mask   *mask.Mask
}

// EncoderOption changes what an encoder writes.
type EncoderOption func(*Encoder)

// WithOrigin sets the name of this process in the ids of its decisions, so that no other process
// writes the same ids: see NewOrigin.
func WithOrigin(origin string) EncoderOption { return func(e *Encoder) { e.origin = origin } }

// WithLabels adds labels to every line, such as the name of the replica. They
// are not read back.
func WithLabels(labels map[string]string) EncoderOption {
	return func(e *Encoder) { e.labels = maps.Clone(labels) }
}

// WithMask hides secrets. The record itself stays as it is.
func WithMask(m *mask.Mask) EncoderOption { return func(e *Encoder) { e.mask = m } }

// NewOrigin generates a unique name for a process, which differs after each start.
func NewOrigin() string { return strings.ToLower(rand.Text()) }

// NewEncoder makes an encoder, which is safe for concurrent use.
func NewEncoder(opts ...EncoderOption) *Encoder {
	e := &Encoder{}
	for _, o := range opts {
		o(e)
	}
	return e
}

// AppendLine appends a record as one line, with a newline.
func (e *Encoder) AppendLine(to []byte, r decision.Record) ([]byte, error) {
	input, err := json.Marshal(r.Input)
	if err != nil {
		return to, fmt.Errorf("writing the question of record %d: %w", r.ID, err)
	}
	result, err := json.Marshal(r.Output)
	if err != nil {
		return to, fmt.Errorf("writing the answer of record %d: %w", r.ID, err)
	}
	l := line{
		DecisionID: decisionID(cmp.Or(r.Origin, e.origin), r.ID), Timestamp: r.Time.UTC(), Labels: e.labels,
		Path: r.Point, Subject: r.Subject, Outcome: r.Outcome, Revision: r.Revision, Bundles: bundlesOf(r.Bundles), Rules: r.Rules,
		Metrics: map[string]int64{durationMetric: r.Duration.Nanoseconds()}, Masked: r.Masked, Shadow: r.Shadow,
	}
	if r.Error != "" {
		l.Error = &Problem{Code: r.Outcome, Message: r.Error}
	}
	if e.mask != nil {
		part := e.mask.BeginLine()
		input, result = part.MaskJSON("input", input), part.MaskJSON("result", result)
		if l.Error != nil {
			l.Error.Message = part.MaskMessage("error/message", l.Error.Message)
		}
		l.Masked = slices.Compact(slices.Sorted(slices.Values(append(part.MaskedPointers(), r.Masked...))))
	}
	head, err := json.Marshal(l)
	if err != nil {
		return to, fmt.Errorf("writing record %d: %w", r.ID, err)
	}
	to = append(to, head[:len(head)-1]...)
	to = append(append(to, `,"input":`...), input...)
	to = append(append(to, `,"result":`...), result...)
	return append(to, "}\n"...), nil
}

// Write writes records as lines, with nothing masked: it is for files that stay on this machine. All
// other uses need an Encoder with a mask.
func Write(w io.Writer, records []decision.Record) error {
	e := NewEncoder()
	var buf []byte
	for _, r := range records {
		text, err := e.AppendLine(buf[:0], r)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("writing record %d: %w", r.ID, err)
		}
		buf = text
	}
	return nil
}

// decisionID is unique as long as the origin is. Decisions with a foreign id have no number.
func decisionID(origin string, id uint64) string {
	switch {
	case origin == "":
		return strconv.FormatUint(id, 10)
	case id == 0:
		return origin
	}
	return origin + "-" + strconv.FormatUint(id, 10)
}

// parseID splits an id into its parts.
func parseID(text string) (origin string, id uint64) {
	number := text
	if i := strings.LastIndexByte(text, '-'); i >= 0 {
		origin, number = text[:i], text[i+1:]
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n == 0 || decisionID(origin, n) != text {
		return text, 0
	}
	return origin, n
}

// bundlesOf parses ids of bundle.Bundle.ID.
func bundlesOf(ids []string) map[string]Bundle {
	if len(ids) == 0 {
		return nil
	}
	out := make(map[string]Bundle, len(ids))
	for _, id := range ids {
		name, revision := decision.SplitBundleID(id)
		out[name] = Bundle{Revision: revision}
	}
	return out
}
