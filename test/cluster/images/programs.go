// SPDX-License-Identifier: Apache-2.0

// Package images builds the images that run in a local cluster: from programs
// on this machine, or stand-ins for images that cannot be had here.
package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/regatta-sh/regatta/charts/release/layer"
)

// Options say how the image of some programs runs.
type Options struct {
	// Entrypoint is the path of the program to run, and its arguments. It
	// defaults to the first program.
	Entrypoint []string
	// User is the user to run as, as a number or a name: root if empty.
	User string
	// BusyBox is the path of a BusyBox to add, with its shell; a program may be
	// a script then.
	BusyBox string
}

// FromPrograms makes an image with the given programs in its root directory.
// They must be linked statically: there is nothing else in it but BusyBox, if
// that is asked for.
func FromPrograms(programs []string, options Options) (v1.Image, error) {
	if len(programs) == 0 {
		return nil, errors.New("an image needs at least one program")
	}
	files := skeleton()
	if options.BusyBox != "" {
		added, err := busyBox(options.BusyBox)
		if err != nil {
			return nil, err
		}
		files = append(files, added...)
	}
	for _, program := range programs {
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("reading the program: %w", err)
		}
		if options.BusyBox == "" || !bytes.HasPrefix(content, []byte("#!/bin/sh\n")) {
			if err := layer.RequireStatic(program); err != nil {
				return nil, err
			}
		}
		files = append(files, layer.File{Path: filepath.Base(program), Mode: 0o755, Content: content})
	}
	packed, err := layer.Pack(files)
	if err != nil {
		return nil, err
	}
	entrypoint := options.Entrypoint
	if len(entrypoint) == 0 {
		entrypoint = []string{path.Join("/", filepath.Base(programs[0]))}
	}
	return newImage(packed, v1.Config{
		Entrypoint: entrypoint, User: options.User, WorkingDir: "/",
		Env: []string{"PATH=/:/bin:/usr/bin"},
	})
}
