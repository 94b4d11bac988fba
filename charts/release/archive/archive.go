// SPDX-License-Identifier: Apache-2.0

// Package archive packs files into archives that are downloaded. The same files at the same time always make the same archive.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// File is a file of an archive. Its path has slashes, and none before it.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
}

// sortByPath returns the files in the order in which they are packed.
func sortByPath(files []File) []File {
	return slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
}

// PackTarGz packs files, all of them of root and changed at one time.
func PackTarGz(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing an archive: %w", err)
	}
	writer := tar.NewWriter(compressed)
	for _, one := range sortByPath(files) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: one.Path, Mode: int64(one.Mode.Perm()), Size: int64(len(one.Content)), ModTime: at.UTC(), Format: tar.FormatUSTAR}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.Path, err)
		}
		if _, err := writer.Write(one.Content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.Path, err)
		}
	}
	for _, one := range []io.Closer{writer, compressed} {
		if err := one.Close(); err != nil {
			return nil, fmt.Errorf("packing an archive: %w", err)
		}
	}
	return out.Bytes(), nil
}

// PackZip packs files, all of them changed at one time.
func PackZip(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, one := range sortByPath(files) {
		header := &zip.FileHeader{Name: one.Path, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(one.Mode.Perm())
		entry, err := writer.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.Path, err)
		}
		if _, err := entry.Write(one.Content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.Path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing an archive: %w", err)
	}
	return out.Bytes(), nil
}
