// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/charts/release/archive"
	"github.com/regatta-sh/regatta/charts/release/archive/archivetest"
)

// at is in a zone of its own, as that of the machine may be.
var at = time.Unix(1_700_000_000, 0).In(time.FixedZone("far", 5*60*60))

func files() []archive.File {
	return []archive.File{{Path: "regatta", Mode: 0o755, Content: []byte("program")}, {Path: "LICENSE", Mode: 0o644, Content: []byte("licence")}}
}

func TestArchivesHaveTheFilesInOneOrder(t *testing.T) {
	want := []string{"LICENSE -rw-r--r-- 2023-11-14T22:13:20Z licence", "regatta -rwxr-xr-x 2023-11-14T22:13:20Z program"}
	for name, one := range map[string]struct {
		pack   func([]archive.File, time.Time) ([]byte, error)
		unpack func(*testing.T, []byte) []string
	}{"tar.gz": {archive.PackTarGz, listTarGz}, "zip": {archive.PackZip, listZip}} {
		packed, err := one.pack(files(), at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, one.unpack(t, packed)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		other := files()
		slices.Reverse(other)
		again, err := one.pack(other, at.UTC())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(packed, again) {
			t.Errorf("%s: another order or zone makes another archive", name)
		}
	}
}

func listTarGz(t *testing.T, packed []byte) (out []string) {
	t.Helper()
	archivetest.EachFile(t, archivetest.DecompressGzip(t, bytes.NewReader(packed)), func(header *tar.Header, content string) {
		out = append(out, fmt.Sprintf("%s %s %s %s", header.Name, header.FileInfo().Mode(), header.ModTime.UTC().Format(time.RFC3339), content))
	})
	return out
}

func listZip(t *testing.T, packed []byte) (out []string) {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range reader.File {
		opened, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s %s %s", entry.Name, entry.Mode(), entry.Modified.UTC().Format(time.RFC3339), content))
	}
	return out
}
