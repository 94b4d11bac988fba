// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// FromArchive makes a bundle from a .tar.gz file in OPA's bundle format, as `opa build` makes it. The
// signature is not verified if by is nil.
func FromArchive(name string, from io.Reader, by *Verification, opts ...Option) (*Bundle, error) {
	files, err := unpackArchive(name, from)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", name, err)
	}
	trusted := ""
	if by != nil {
		if trusted, err = by.verifyFiles(files); err != nil {
			return nil, fmt.Errorf("reading bundle %s: %w", name, err)
		}
	}
	signature, err := signatureOf(files)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", name, err)
	}
	b, err := FromFiles(name, files, opts...)
	if err != nil {
		return nil, err
	}
	if signature != nil {
		signature.Verified, signature.Key = by != nil, trusted
	}
	b.Signature = signature
	return b, nil
}

// unpackArchive reads all files into memory. The limits apply to the unpacked contents, whatever the
// archive declares: to the unzipped bytes and to the bytes of the files, since a sparse file has more
// of these.
func unpackArchive(name string, from io.Reader) (map[string]string, error) {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return nil, ArchiveError{cutOff(err)}
	}
	defer zipped.Close()
	limited := &io.LimitedReader{R: zipped, N: maxTotal + 1}
	archive := tar.NewReader(limited)
	files, total := map[string]string{}, 0
	for {
		h, err := archive.Next()
		if limited.N <= 0 {
			return nil, TooLargeError{Name: name}
		}
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, ArchiveError{cutOff(err)}
		}
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		p, err := bundlePath(h.Name)
		if err != nil {
			return nil, ArchiveError{err}
		}
		if h.Typeflag != tar.TypeReg {
			return nil, ArchiveError{fmt.Errorf("%s is a link or a device, and a bundle has plain files only", p)}
		}
		if _, ok := files[p]; ok {
			return nil, ArchiveError{fmt.Errorf("%s is there twice", p)}
		}
		b, err := io.ReadAll(io.LimitReader(archive, maxFile+1))
		total += len(b)
		if len(b) > maxFile || len(files) >= maxFiles || total > maxTotal || limited.N <= 0 {
			return nil, TooLargeError{Name: p}
		}
		if err != nil {
			return nil, ArchiveError{fmt.Errorf("%s: %w", p, cutOff(err))}
		}
		if err := checkFileName(p); err != nil {
			return nil, ArchiveError{err}
		}
		files[p] = string(b)
	}
}

// ArchiveError says why a file is no valid archive of a bundle.
type ArchiveError struct{ Err error }

func (e ArchiveError) Error() string { return fmt.Sprintf("unpacking: %v", e.Err) }
func (e ArchiveError) Unwrap() error { return e.Err }

// cutOff explains the errors of readers of archives for a file that is no archive, or only the
// beginning of one.
func cutOff(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("the file is no .tar.gz file: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the file ends too early: %w", err)
	}
	return err
}

// bundlePath is the path of a file in the bundle. OPA writes paths with a leading slash, and tar with
// "./".
func bundlePath(name string) (string, error) {
	p := strings.TrimPrefix(strings.TrimPrefix(name, "/"), "./")
	strange := func(r rune) bool { return r == '\\' || !unicode.IsPrint(r) }
	if !fs.ValidPath(p) || p == "." || strings.ContainsFunc(p, strange) {
		return "", fmt.Errorf("%q is outside of the bundle, or no path that a bundle may have", name)
	}
	return p, nil
}

// checkFileName refuses files that have a meaning in OPA that the engine does not support: the bundle
// would not behave as in its author's tests.
func checkFileName(p string) error {
	switch base := path.Base(p); {
	case base == "patch.json":
		return fmt.Errorf("%s makes this a delta bundle; ship the whole bundle", p)
	case path.Ext(base) == ".wasm", base == "plan.json", base == "plan.pb":
		return fmt.Errorf("%s is compiled policy; build with opa build --target rego, which is the default", p)
	case strings.HasSuffix(base, ".manifest.pb"):
		return fmt.Errorf("%s: the manifest must be JSON, in the file %s", p, manifestFile)
	case strings.HasSuffix(base, manifestFile) && p != manifestFile, base == signatureFile && p != signatureFile:
		return fmt.Errorf("%s must be at the root of the bundle", p)
	}
	return nil
}

// PackArchive writes the files of a bundle, tests included, as an archive that
// FromArchive and OPA read. The same files make the same bytes.
func (b *Bundle) PackArchive(w io.Writer) error { return packArchive(w, b.Files) }

// PackFiles writes all files unchanged, by their paths, as such an archive, so that a signature among
// them stays valid. A path that an archive may not have is an error. FromArchive checks whether the
// files are a valid bundle.
func PackFiles(w io.Writer, files map[string]string) error {
	packed := make(map[string]string, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p, err := bundlePath(name)
		if err == nil {
			err = checkFileName(p)
		}
		if err != nil {
			return fmt.Errorf("packing: %w", err)
		}
		if _, ok := packed[p]; ok {
			return fmt.Errorf("packing: %s is there twice", p)
		}
		packed[p] = files[name]
	}
	return packArchive(w, packed)
}

func packArchive(w io.Writer, files map[string]string) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: "/" + p, Mode: 0o644, Size: int64(len(files[p])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %s: %w", p, err)
		}
		if _, err := io.WriteString(archive, files[p]); err != nil {
			return fmt.Errorf("packing %s: %w", p, err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return nil
}
