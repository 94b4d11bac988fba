// SPDX-License-Identifier: Apache-2.0

// Package layer packs files into layers of images. The same files always make the same layer: nothing in it depends on when or where
// it was made.
package layer

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is an entry of a layer: a directory if its path ends in a slash, a symbolic link if Link is set, a regular file otherwise. The
// path has no slash before it.
type File struct {
	Path    string
	Link    string
	Mode    int64
	Content []byte
}

// Pack makes a layer of files and of the directories that they lie in. All of them are owned by root.
func Pack(files []File) (v1.Layer, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, one := range withParents(files) {
		header := &tar.Header{Name: one.Path, Mode: one.Mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		switch {
		case one.Link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, one.Link
		case one.Path[len(one.Path)-1] == '/':
			header.Typeflag = tar.TypeDir
		default:
			header.Typeflag, header.Size = tar.TypeReg, int64(len(one.Content))
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.Path, err)
		}
		if _, err := writer.Write(one.Content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.Path, err)
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
func withParents(files []File) []File {
	var all []File
	seen := map[string]bool{}
	add := func(one File) {
		if !seen[one.Path] {
			seen[one.Path] = true
			all = append(all, one)
		}
	}
	for _, one := range files {
		var parents []string
		for dir := path.Dir(path.Clean(one.Path)); dir != "."; dir = path.Dir(dir) {
			parents = append(parents, dir+"/")
		}
		for _, parent := range slices.Backward(parents) {
			add(File{Path: parent, Mode: 0o755})
		}
		add(one)
	}
	return all
}
