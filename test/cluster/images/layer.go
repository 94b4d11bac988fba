// SPDX-License-Identifier: Apache-2.0

// Package images builds the images that run in a local cluster: from programs
// on this machine, or stand-ins for images that cannot be had here.
package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A file is an entry of a layer: a directory if it ends in a slash, a link if
// link is set, a regular file otherwise.
type file struct {
	path    string
	link    string
	mode    int64
	content []byte
}

// skeleton is what programs expect of any root file system: somewhere to write,
// and names for the users that charts run them as.
func skeleton() []file {
	return []file{
		{path: "tmp/", mode: 0o1777},
		{path: "etc/", mode: 0o755},
		{path: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{path: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n")},
	}
}

// newLayer packs files. The same files always make the same layer: nothing in
// it depends on when or where it was made.
func newLayer(files []file) (v1.Layer, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, one := range withParents(files) {
		header := &tar.Header{Name: one.path, Mode: one.mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		switch {
		case one.link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, one.link
		case one.path[len(one.path)-1] == '/':
			header.Typeflag = tar.TypeDir
		default:
			header.Typeflag, header.Size = tar.TypeReg, int64(len(one.content))
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.path, err)
		}
		if _, err := writer.Write(one.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	return layer, nil
}

// withParents adds the directories that files lie in and that are not listed.
func withParents(files []file) []file {
	var all []file
	seen := map[string]bool{}
	add := func(one file) {
		if !seen[one.path] {
			seen[one.path] = true
			all = append(all, one)
		}
	}
	for _, one := range files {
		var parents []string
		for dir := path.Dir(path.Clean(one.path)); dir != "."; dir = path.Dir(dir) {
			parents = append(parents, dir+"/")
		}
		for _, parent := range slices.Backward(parents) {
			add(file{path: parent, mode: 0o755})
		}
		add(one)
	}
	return all
}

// newImage makes an image of one layer that runs config on this machine.
func newImage(layer v1.Layer, config v1.Config) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	current, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	current = current.DeepCopy()
	current.Architecture, current.OS = runtime.GOARCH, "linux"
	current.Config = config
	image, err = mutate.ConfigFile(image, current)
	if err != nil {
		return nil, fmt.Errorf("setting the configuration: %w", err)
	}
	return image, nil
}
