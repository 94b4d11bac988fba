package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
)

const signatures = ".signatures.json"

// Keys verify the signature of an archive: OPA's own format, which `opa sign`
// makes.
type Keys struct {
	// Public has PEM public keys, or secrets, and their algorithm, by key id.
	Public map[string]*opabundle.KeyConfig
	// ID is the key to use where a signature names none; Scope is what the
	// signature must have been made for, if not empty.
	ID, Scope string
}

// SignatureError refuses an archive that nobody trusted has signed.
type SignatureError struct{ Err error }

func (e SignatureError) Error() string { return "verifying the signature: " + e.Err.Error() }
func (e SignatureError) Unwrap() error { return e.Err }

// FromArchive makes a bundle of a .tar.gz file in OPA's bundle format. With
// keys, every file must be signed by one of them; without, nothing is verified.
func FromArchive(name string, from io.Reader, keys *Keys, opts ...Option) (*Bundle, error) {
	files, err := unpack(name, from)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", name, err)
	}
	if keys != nil {
		if err := keys.verify(files); err != nil {
			return nil, fmt.Errorf("reading bundle %s: %w", name, SignatureError{err})
		}
	}
	return FromFiles(name, files, opts...)
}

// unpack reads all files into memory. Limits hold for what comes out of the
// archive, whatever it says about itself.
func unpack(name string, from io.Reader) (map[string]string, error) {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	defer zipped.Close()
	limited := &io.LimitedReader{R: zipped, N: maxTotal + 1}
	archive := tar.NewReader(limited)
	files := map[string]string{}
	for {
		h, err := archive.Next()
		if limited.N <= 0 {
			return nil, TooLargeError{Name: name}
		}
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue // links lead out of the archive
		}
		p := path.Clean(strings.TrimPrefix(h.Name, "/"))
		if p == ".." || strings.HasPrefix(p, "../") {
			return nil, fmt.Errorf("unpacking: %s is outside of the bundle", h.Name)
		}
		if _, ok := files[p]; ok {
			return nil, fmt.Errorf("unpacking: %s is there twice", p)
		}
		b, err := io.ReadAll(io.LimitReader(archive, maxFile+1))
		if len(b) > maxFile || len(files) >= maxFiles || limited.N <= 0 {
			return nil, TooLargeError{Name: p}
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", p, err)
		}
		files[p] = string(b)
	}
}

func (k *Keys) verify(files map[string]string) error {
	text, ok := files[signatures]
	if !ok {
		return fmt.Errorf("there is no %s", signatures)
	}
	var sc opabundle.SignaturesConfig
	if err := json.Unmarshal([]byte(text), &sc); err != nil {
		return fmt.Errorf("%s: %w", signatures, err)
	}
	sc.Plugin = "" // an archive must not choose how it is verified
	signed, err := opabundle.VerifyBundleSignature(sc, opabundle.NewVerificationConfig(k.Public, k.ID, k.Scope, nil))
	if err != nil {
		return err
	}
	for p, text := range files {
		if p == signatures {
			continue
		}
		// Where it was packed with a slash in front, so it was signed.
		name := p
		if _, ok := signed[name]; !ok {
			name = "/" + p
		}
		if err := opabundle.VerifyBundleFile(name, *bytes.NewBufferString(text), signed); err != nil {
			return err
		}
		delete(signed, name)
	}
	for p := range signed {
		return fmt.Errorf("%s was signed but is missing", p)
	}
	return nil
}

// Pack writes the files of a bundle as an archive that FromArchive and OPA read.
func (b *Bundle) Pack(w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	names := make([]string, 0, len(b.Files))
	for p := range b.Files {
		names = append(names, p)
	}
	slices.Sort(names)
	for _, p := range names {
		h := &tar.Header{Name: p, Mode: 0o644, Size: int64(len(b.Files[p])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %s: %w", p, err)
		}
		if _, err := io.WriteString(archive, b.Files[p]); err != nil {
			return fmt.Errorf("packing %s: %w", p, err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return nil
}
