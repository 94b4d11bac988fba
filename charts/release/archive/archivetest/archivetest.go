// SPDX-License-Identifier: Apache-2.0

// Package archivetest reads archives in tests.
package archivetest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// ReadTar returns the contents of the files of a tar archive by their names.
func ReadTar(t testing.TB, from io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{}
	EachFile(t, from, func(header *tar.Header, content string) { files[header.Name] = content })
	return files
}

// ReadTarGz does so for an archive that is compressed by gzip.
func ReadTarGz(t testing.TB, from io.Reader) map[string]string {
	t.Helper()
	return ReadTar(t, DecompressGzip(t, from))
}

// DecompressGzip reads what gzip compressed.
func DecompressGzip(t testing.TB, from io.Reader) io.Reader {
	t.Helper()
	uncompressed, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	return uncompressed
}

// EachFile calls a function for each file of a tar archive, in the order of the archive.
func EachFile(t testing.TB, from io.Reader, do func(header *tar.Header, content string)) {
	t.Helper()
	for reader := tar.NewReader(from); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		do(header, string(content))
	}
}
