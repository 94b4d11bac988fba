// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// File appends lines to a file. When the file reaches its limit, it is renamed to name.1, the previous
// name.1 to name.2, and so on; the oldest one is removed.
type File struct {
	path string
	max  int64
	keep int
	file *os.File
	size int64
	// regular is false for a file that cannot be rotated, such as a pipe.
	regular bool
}

// OpenFile opens a file, and creates it if it does not exist, readable only by its owner. The file may
// have limit bytes, without a bound if that is 0, and keep older files are kept.
func OpenFile(path string, limit int64, keep int) (*File, error) {
	f := &File{path: path, max: limit, keep: keep}
	if err := f.openFile(); err != nil {
		return nil, fmt.Errorf("opening the log of decisions: %w", err)
	}
	return f, nil
}

func (f *File) openFile() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size, f.regular = file, info.Size(), info.Mode().IsRegular()
	if !f.regular || f.size == 0 {
		return nil
	}
	// A process that was killed may have left an incomplete line.
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, f.size-1); err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, file.Close())
	}
	if last[0] == '\n' {
		return nil
	}
	n, err := file.WriteString("\n")
	f.size += int64(n)
	return err
}

// Write implements Output. After an error no incomplete line is left.
func (f *File) Write(_ context.Context, lines [][]byte) error {
	for len(lines) > 0 {
		n := f.countFittingLines(lines)
		if n == 0 {
			if err := f.rotateFile(); err != nil {
				return err
			}
			n = max(f.countFittingLines(lines), 1) // a line that is too long gets its own file
		}
		if err := f.appendText(joinLines(lines[:n])); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// countFittingLines is how many lines fit into the file.
func (f *File) countFittingLines(lines [][]byte) int {
	if f.max == 0 || !f.regular {
		return len(lines)
	}
	size := f.size
	for i, line := range lines {
		if size += int64(len(line)); size > f.max && (i > 0 || f.size > 0) {
			return i
		}
	}
	return len(lines)
}

func (f *File) appendText(text []byte) error {
	if f.file == nil { // it could not be opened after the rotation
		if err := f.openFile(); err != nil {
			return fmt.Errorf("opening the log of decisions: %w", err)
		}
	}
	n, err := f.file.Write(text)
	if err == nil {
		f.size += int64(n)
		return nil
	}
	if n > 0 && f.regular {
		err = errors.Join(err, f.file.Truncate(f.size))
	}
	return fmt.Errorf("appending to the log of decisions: %w", err)
}

func (f *File) rotateFile() error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing a full log of decisions: %w", err)
	}
	name := func(i int) string {
		if i == 0 {
			return f.path
		}
		return f.path + "." + strconv.Itoa(i)
	}
	if f.keep == 0 {
		if err := os.Remove(f.path); err != nil {
			return fmt.Errorf("removing a full log of decisions: %w", err)
		}
	}
	for i := f.keep; i > 0; i-- {
		if err := os.Rename(name(i-1), name(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("renaming a full log of decisions: %w", err)
		}
	}
	if err := f.openFile(); err != nil {
		return fmt.Errorf("opening the next log of decisions: %w", err)
	}
	return nil
}

// Close implements Output.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
