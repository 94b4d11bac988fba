// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// An entry is a change of a manifest. The registry behind keeps blobs on disk
// but manifests in memory, so these are written down and replayed at a start.
type entry struct {
	Method      string `json:"method"`
	Repository  string `json:"repository"`
	Reference   string `json:"reference"`
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

type journal struct {
	mutex sync.Mutex
	file  *os.File
}

// openJournal passes every entry of the file to replay, in order, and returns
// the file for more.
func openJournal(path string, replay func(entry) error) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the registry directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the manifests: %w", err)
	}
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var one entry
		end := decoder.InputOffset()
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			// A crash in the midst of a write: what follows was never
			// confirmed to the client that pushed it.
			if err := file.Truncate(end); err != nil {
				return nil, fmt.Errorf("cutting off a half-written manifest: %w", err)
			}
			break
		}
		if err := replay(one); err != nil {
			return nil, fmt.Errorf("replaying the manifests: %w", err)
		}
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("opening the manifests: %w", err)
	}
	return &journal{file: file}, nil
}

func (j *journal) append(one entry) error {
	line, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encoding a manifest: %w", err)
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("keeping a manifest: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }
