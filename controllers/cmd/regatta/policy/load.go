// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
)

// loadBundle reads a bundle from a folder, an archive or a single file. Only archives
// can be verified; by is nil if nothing is.
func loadBundle(path string, by *bundle.Verification, opts ...bundle.Option) (*bundle.Bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading bundle: %w", err)
	}
	var text []byte
	if !info.IsDir() {
		if text, err = readFile(path); err != nil {
			return nil, fmt.Errorf("reading bundle: %w", err)
		}
	}
	packed := !info.IsDir() && (isArchive(path) || isGzip(text))
	switch {
	case by != nil && !packed:
		return nil, exit.UsageError(fmt.Errorf("%s is no .tar.gz file, and only those are signed", path))
	case info.IsDir():
		return bundle.FromFS(nameOf(path), os.DirFS(path), opts...)
	case packed:
		return bundle.FromArchive(nameOf(path), bytes.NewReader(text), by, opts...)
	case filepath.Ext(path) != ".rego":
		return nil, exit.UsageError(fmt.Errorf("%s is no bundle: want a folder, a .tar.gz file or a .rego file", path))
	}
	return bundle.FromFiles(nameOf(path), map[string]string{filepath.Base(path): string(text)}, opts...)
}

// readArchive reads an archive that build made, without unpacking it.
func readArchive(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, exit.UsageError(fmt.Errorf("%s is a folder; regatta policy build packs it", path))
	}
	text, err := readFile(path)
	if err != nil {
		return nil, wrapRefusal(fmt.Errorf("reading bundle: %w", err))
	}
	return text, nil
}

// maxRead is more than any bundle has, packed or not, in bytes.
const maxRead = 16 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err == nil && len(text) > maxRead {
		err = bundle.TooLargeError{Name: path}
	}
	return text, err
}

// isGzip reports whether a text begins like gzip: the name of a file does not tell, since archives have many.
func isGzip(text []byte) bool { return bytes.HasPrefix(text, []byte{0x1f, 0x8b}) }

func isArchive(path string) bool {
	return strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".tgz")
}

// nameOf is the name of a bundle that is read from a path.
func nameOf(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".tar.gz"), ".tgz")
}

// refusalProblems says why the files at a path make no bundle, or a bundle without a
// signature of a trusted key. It is nil if the error has another cause.
func refusalProblems(path string, err error) module.Problems {
	var signature bundle.SignatureError
	var large bundle.TooLargeError
	var archive bundle.ArchiveError
	whole := func(code string, err error) module.Problems {
		return module.Problems{{File: path, Row: 1, Col: 1, Code: code, Message: err.Error()}}
	}
	switch ps := problemsOf(err); {
	case ps != nil:
		return ps
	case errors.As(err, &signature):
		return whole("signature_error", signature)
	case errors.As(err, &large):
		return whole("limit_error", large)
	case errors.As(err, &archive):
		return whole("archive_error", archive)
	}
	return nil
}

// wrapRefusal gives an error the code of a refusal if it is one by policy.
func wrapRefusal(err error) error {
	if refusalProblems("", err) != nil {
		return exit.RefusalError(err)
	}
	return err
}

// prefixProblemPaths puts the path a bundle was read from before the files of its problems, so
// that an editor finds them.
func prefixProblemPaths(path string, err error) error {
	ps := problemsOf(err)
	if ps == nil {
		return err
	}
	out := make(module.Problems, len(ps))
	for i, p := range ps {
		p.File = bundleFilePath(path, p.File)
		out[i] = p
	}
	return out
}

// bundleFilePath is the path of a file of the bundle, or of a place in it, as seen from outside of the
// bundle.
func bundleFilePath(path, file string) string {
	info, err := os.Stat(path)
	name, place, placed := strings.Cut(file, ":")
	switch {
	case err == nil && !info.IsDir() && filepath.Ext(path) == ".rego":
		name = path
	case name == nameOf(path):
		name = path // the problem is about the bundle as a whole
	default:
		name = filepath.Join(path, name)
	}
	if placed {
		return name + ":" + place
	}
	return name
}
