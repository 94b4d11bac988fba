// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// Stream writes lines to a writer, such as the standard output.
type Stream struct{ w io.Writer }

// NewStream makes an output of a writer, which stays open when it is closed.
func NewStream(w io.Writer) Stream { return Stream{w} }

// Write implements Output. Each line is written with a single call, so that other writers may use the
// same stream.
func (s Stream) Write(_ context.Context, lines [][]byte) error {
	for _, line := range lines {
		if _, err := s.w.Write(line); err != nil {
			return fmt.Errorf("writing a line: %w", err)
		}
	}
	return nil
}

// Close implements Output.
func (Stream) Close() error { return nil }

// joinLines joins lines to one text.
func joinLines(lines [][]byte) []byte { return slices.Concat(lines...) }
