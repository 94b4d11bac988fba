// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// Bounds on the records that are made again. A manager remembers up to record.DefaultBytes of records, which take several times as much memory
// in a child that decodes them. Their number must not affect whether a bundle is accepted.
const (
	// mostReplayed is how many records are sent.
	mostReplayed = 1000
	// replayedBytes is how many bytes their lines take together, and replayedLine one of them.
	replayedBytes = 4 << 20
	replayedLine  = 1 << 20
)

// encodeSample returns the lines of a sample of records. It takes the newest remaining record of each point in turn, so that rarely
// used points are in the sample. A record whose line is too long is left out. records are sorted, the newest first.
func encodeSample(records []decision.Record) ([][]byte, error) {
	byPoint := map[decision.Name][]int{}
	var points []decision.Name
	for i, r := range records {
		if byPoint[r.Point] == nil {
			points = append(points, r.Point)
		}
		byPoint[r.Point] = append(byPoint[r.Point], i)
	}
	var lines [][]byte
	size := 0
	for left := true; left; {
		left = false
		for _, point := range points {
			if len(byPoint[point]) == 0 {
				continue
			}
			left = true
			r := records[byPoint[point][0]]
			byPoint[point] = byPoint[point][1:]
			if len(lines) == mostReplayed {
				return lines, nil
			}
			if record.MemorySize(r) > 2*replayedLine { // its line would be too long
				continue
			}
			var line bytes.Buffer
			if err := record.Write(&line, []decision.Record{r}); err != nil {
				return nil, err
			}
			if line.Len() > replayedLine {
				continue
			}
			if size += line.Len(); size > replayedBytes {
				return lines, nil
			}
			lines = append(lines, line.Bytes())
		}
	}
	return lines, nil
}

// readLines reads lines one at a time, so that no more than one is in memory.
func readLines(from io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewReaderSize(from, 64<<10)
		for {
			line, err := lines.ReadBytes('\n')
			if len(bytes.TrimSpace(line)) > 0 && !yield(line, nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading records: %w", err))
				return
			}
		}
	}
}

// listLines iterates over lines in memory.
func listLines(lines [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}
