// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/regatta-sh/regatta/charts/release/layer"
)

// Where programs in Go look for certificates and time zones first.
const (
	certificates = "etc/ssl/certs/ca-certificates.crt"
	timeZones    = "usr/share/zoneinfo"
)

// packBase makes the layer below the programs: users, a folder for temporary files, root certificates and time zones. All of it is from
// modules and the Go distribution, so that it is the same on each machine with the same versions of them.
func packBase(ctx context.Context) (v1.Layer, error) {
	files := []layer.File{
		{Path: "tmp/", Mode: 0o1777},
		{Path: "etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Content: []byte("root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n")},
		{Path: certificates, Mode: 0o644, Content: rootCertificates()},
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the folder of the Go distribution: %w", err)
	}
	zones, err := readTimeZones(filepath.Join(string(bytes.TrimSpace(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	return layer.Pack(append(files, zones...))
}

// rootCertificates are those that Mozilla trusts, as PEM. Those that it trusts for older certificates alone are left out: a file of
// certificates cannot say that.
func rootCertificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// readTimeZones reads the time zones of a Go distribution.
func readTimeZones(from string) ([]layer.File, error) {
	raw, err := os.ReadFile(from)
	if err != nil {
		return nil, fmt.Errorf("reading the time zones of the Go distribution: %w", err)
	}
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", from, err)
	}
	var files []layer.File
	for _, entry := range archive.File {
		if strings.HasSuffix(entry.Name, "/") {
			continue
		}
		content, err := readEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", entry.Name, from, err)
		}
		files = append(files, layer.File{Path: path.Join(timeZones, entry.Name), Mode: 0o644, Content: content})
	}
	return files, nil
}

func readEntry(entry *zip.File) (content []byte, err error) {
	opened, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return io.ReadAll(opened)
}
