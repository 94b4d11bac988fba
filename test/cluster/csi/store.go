// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// store keeps volumes as directories, which the controller service and the nodes
// share. Each of the two writes files of its own, so that they need no lock.
type store struct{ dir string }

// volume is what the controller service records of a volume.
type volume struct {
	// Size is in bytes.
	Size       int64      `json:"size"`
	Parameters Parameters `json:"parameters"`
	// Grown is when Size last became larger.
	Grown time.Time `json:"grown"`
}

// fileSystem is what nodes record of a volume: the size of its file system, in bytes.
type fileSystem struct {
	Size int64 `json:"size"`
}

const (
	volumeFile     = "volume.json"
	fileSystemFile = "file-system.json"
)

// data is the directory that a pod gets.
func (s store) data(id string) string { return filepath.Join(s.dir, id, "data") }

// create makes a volume whose file system is as large as it is.
func (s store) create(id string, made volume) error {
	if err := os.MkdirAll(s.data(id), 0o777); err != nil {
		return fmt.Errorf("making the directory of volume %s: %w", id, err)
	}
	// Whatever the umask: a container may run as any user.
	if err := os.Chmod(s.data(id), 0o777); err != nil {
		return fmt.Errorf("opening the directory of volume %s to all users: %w", id, err)
	}
	if err := s.write(id, fileSystemFile, fileSystem{Size: made.Size}); err != nil {
		return err
	}
	return s.write(id, volumeFile, made) // last, for its file is what makes a volume one
}

func (s store) remove(id string) error {
	if err := check(id); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, id)); err != nil {
		return fmt.Errorf("removing volume %s: %w", id, err)
	}
	return nil
}

// volume reads what is recorded of a volume. A volume that is not there is an error
// with the code NotFound.
func (s store) volume(id string) (found volume, err error) {
	return found, s.read(id, volumeFile, &found)
}

func (s store) fileSystem(id string) (found fileSystem, err error) {
	return found, s.read(id, fileSystemFile, &found)
}

// FileSystemSize is the size in bytes that nodes have given the file system of a volume,
// which is below dir. A volume that is not there is an error with the code NotFound.
func FileSystemSize(dir, id string) (int64, error) {
	found, err := store{dir}.fileSystem(id)
	return found.Size, err
}

func (s store) read(id, name string, into any) error {
	if err := check(id); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(s.dir, id, name))
	if errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.NotFound, "there is no volume %s", id)
	}
	if err != nil {
		return fmt.Errorf("reading %s of volume %s: %w", name, id, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding %s of volume %s: %w", name, id, err)
	}
	return nil
}

// write replaces a file at once, because the other service may read it at any time.
func (s store) write(id, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s of volume %s: %w", name, id, err)
	}
	file, err := os.CreateTemp(filepath.Join(s.dir, id), name+".*")
	if err != nil {
		return fmt.Errorf("writing %s of volume %s: %w", name, id, err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s of volume %s: %w", name, id, err)
	}
	if err := os.Rename(file.Name(), filepath.Join(s.dir, id, name)); err != nil {
		return fmt.Errorf("replacing %s of volume %s: %w", name, id, err)
	}
	return nil
}

// check refuses the ID of a volume that would be another directory.
func check(id string) error {
	if id == "" || id != filepath.Base(id) || !filepath.IsLocal(id) || id == "." {
		return status.Errorf(codes.InvalidArgument, "%q is no ID of a volume", id)
	}
	return nil
}
