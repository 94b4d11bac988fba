// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/document"
	"github.com/regatta-sh/regatta/engine/record"
)

// TamperedError says that a file of an archive is not as it was exported, or that the archive is not one that was exported.
type TamperedError struct {
	// File is the file of the archive; empty for the archive itself.
	File string
	Err  error
}

func (e TamperedError) Error() string {
	if e.File == "" {
		return e.Err.Error()
	}
	return e.File + ": " + e.Err.Error()
}

func (e TamperedError) Unwrap() error { return e.Err }

// Report is what was found about an archive that is as it was exported.
type Report struct {
	Manifest *Manifest `json:"manifest"`
	// Signature has the claims of the signature; nil if the archive is not signed. Its field Verified says whether it was verified.
	Signature *bundle.Signature `json:"signature,omitempty"`
	Recomputed
}

// VerifyArchive reads an archive once, from its beginning to its end. It checks that all files are as the manifest says, verifies the
// signature, and makes each decision again. by is nil if no key is trusted: the signature is not verified then. Its error is a
// TamperedError, a bundle.SignatureError, that of the context, or one of reading.
func VerifyArchive(ctx context.Context, from io.Reader, by *bundle.Verification) (*Report, error) {
	a, err := openArchive(from)
	if err != nil {
		return nil, err
	}
	defer a.zipped.Close()
	out := &Report{}
	if out.Manifest, out.Signature, err = a.readSignedManifest(by); err != nil {
		return nil, err
	}
	policies, err := a.readPolicies(out.Manifest)
	if err != nil {
		return nil, err
	}
	again := newRecomputer(out.Manifest, policies)
	defer again.closeEngines()
	for _, h := range out.Manifest.Hours {
		if err := a.readHour(h, out.Manifest, func(r decision.Record) error { return again.recomputeDecision(ctx, r) }); err != nil {
			return nil, err
		}
	}
	if h, err := a.nextFile(); err == nil {
		return nil, TamperedError{h.Name, errors.New("the manifest does not name the file")}
	} else if !errors.Is(err, io.EOF) {
		return nil, a.explainError("", err)
	}
	out.Recomputed = again.result
	return out, nil
}

// ReadManifest reads what is in an archive, and nothing else of it: neither its files nor its signature are verified. Its error is a
// TamperedError.
func ReadManifest(from io.Reader) (*Manifest, error) {
	a, err := openArchive(from)
	if err != nil {
		return nil, err
	}
	defer a.zipped.Close()
	text, err := a.readFile(manifestFile, largestManifest)
	if err != nil {
		return nil, err
	}
	return explainManifest(text)
}

// archive is one that is being read.
type archive struct {
	zipped *gzip.Reader
	tar    *tar.Reader
	// ahead is a file that was found in place of an optional one.
	ahead *tar.Header
}

func openArchive(from io.Reader) (*archive, error) {
	zipped, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return nil, TamperedError{Err: fmt.Errorf("the file is no .tar.gz file: %w", err)}
	}
	return &archive{zipped: zipped, tar: tar.NewReader(zipped)}, nil
}

// nextFile goes to the next file.
func (a *archive) nextFile() (*tar.Header, error) {
	if h := a.ahead; h != nil {
		a.ahead = nil
		return h, nil
	}
	h, err := a.tar.Next()
	if err == nil && h.Typeflag != tar.TypeReg {
		return nil, TamperedError{h.Name, errors.New("it is no plain file")}
	}
	return h, err
}

// openFile goes to the next file, which must have this name.
func (a *archive) openFile(name string) (*tar.Header, error) {
	h, err := a.nextFile()
	if errors.Is(err, io.EOF) {
		return nil, TamperedError{name, errors.New("the file is missing")}
	}
	if err != nil {
		return nil, a.explainError(name, err)
	}
	if h.Name != name {
		return nil, TamperedError{h.Name, fmt.Errorf("%s was to come here", name)}
	}
	return h, nil
}

// explainError tells a file that is cut off or damaged from other errors.
func (a *archive) explainError(name string, err error) error {
	var tampered TamperedError
	if errors.As(err, &tampered) {
		return err
	}
	return TamperedError{name, fmt.Errorf("the archive is damaged or ends too early: %w", err)}
}

// readText reads the file that is open.
func (a *archive) readText(h *tar.Header, limit int64) ([]byte, error) {
	if h.Size > limit {
		return nil, TamperedError{h.Name, fmt.Errorf("it has %d bytes, and may have %d", h.Size, limit)}
	}
	text, err := io.ReadAll(io.LimitReader(a.tar, limit))
	if err != nil {
		return nil, a.explainError(h.Name, err)
	}
	return text, nil
}

// readFile reads the next file, which must have this name.
func (a *archive) readFile(name string, limit int64) ([]byte, error) {
	h, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	return a.readText(h, limit)
}

// readSignedManifest reads the manifest, and its signature if there is one. The manifest is parsed after its signature was verified.
func (a *archive) readSignedManifest(by *bundle.Verification) (*Manifest, *bundle.Signature, error) {
	text, err := a.readFile(manifestFile, largestManifest)
	if err != nil {
		return nil, nil, err
	}
	files := map[string]string{manifestFile: string(text)}
	switch h, err := a.nextFile(); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, nil, a.explainError("", err)
	case h.Name != signatureFile:
		a.ahead = h
	default:
		signature, err := a.readText(h, largestSignature)
		if err != nil {
			return nil, nil, err
		}
		files[signatureFile] = string(signature)
	}
	read := bundle.ReadSignature
	if by != nil {
		read = by.VerifyFiles
	}
	signature, err := read(files)
	if err != nil {
		return nil, nil, err
	}
	m, err := explainManifest(text)
	return m, signature, err
}

// explainManifest parses a manifest, and tells where it is wrong.
func explainManifest(text []byte) (*Manifest, error) {
	m, err := parseManifest(text)
	if err != nil {
		return nil, TamperedError{manifestFile, document.ExplainError(text, err)}
	}
	return m, nil
}

// readPolicies reads the bundles, by their revisions.
func (a *archive) readPolicies(m *Manifest) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, p := range m.Policies {
		text, err := a.readFile(p.File, largestPolicy)
		if err != nil {
			return nil, err
		}
		if int64(len(text)) != p.Bytes || hashText(text) != p.SHA256 {
			return nil, TamperedError{p.File, errChanged}
		}
		out[p.Revision] = text
	}
	return out, nil
}

var errChanged = errors.New("the file is not as the manifest says: it was changed")

// readHour reads the decisions of an hour while it hashes them.
func (a *archive) readHour(h Hour, m *Manifest, each func(decision.Record) error) error {
	header, err := a.openFile(h.File)
	if err != nil {
		return err
	}
	if header.Size != h.Bytes {
		return TamperedError{h.File, errChanged}
	}
	sum := &countingHash{Hash: sha256.New()}
	last, n := line{}, 0
	err = record.ReadEachLine(io.TeeReader(a.tar, sum), func(text []byte, r decision.Record) error {
		n++
		now := line{time: r.Time, origin: r.Origin, id: r.ID}
		switch {
		case r.Time.Before(h.Start) || !r.Time.Before(h.Start.Add(time.Hour)):
			return TamperedError{h.File, fmt.Errorf("decision %d is of %s, which is not in this hour", n, r.Time.UTC().Format(time.RFC3339))}
		case m.Since != nil && r.Time.Before(*m.Since) || m.Until != nil && !r.Time.Before(*m.Until):
			return TamperedError{h.File, fmt.Errorf("decision %d is not between since and until", n)}
		case n > 1 && compareLines(last, now) >= 0:
			return TamperedError{h.File, fmt.Errorf("decision %d is not behind the one before it", n)}
		}
		last = now
		return each(r)
	})
	switch {
	case sum.bytes == h.Bytes && hex.EncodeToString(sum.Sum(nil)) != h.SHA256: // whatever else is wrong follows from that
		return TamperedError{h.File, errChanged}
	case err != nil:
		return a.explainHour(h, err)
	case n != h.Decisions:
		return TamperedError{h.File, fmt.Errorf("it has %d decisions that this regatta knows, and the manifest says %d", n, h.Decisions)}
	}
	return nil
}

// explainHour returns errors that are not about the file as they are.
func (a *archive) explainHour(h Hour, err error) error {
	var again recomputeError
	if errors.As(err, &again) {
		return again.err
	}
	return a.explainError(h.File, err)
}

// countingHash counts what it hashes.
type countingHash struct {
	hash.Hash
	bytes int64
}

func (c *countingHash) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return c.Hash.Write(p)
}
