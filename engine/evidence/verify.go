// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"archive/tar"
	"bufio"
	"bytes"
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
	var again *recomputer
	defer func() {
		if again != nil {
			again.closeEngines()
		}
	}()
	out, err := readArchive(from, by, func(m *Manifest, policies map[string][]byte) func(record.Line) error {
		again = newRecomputer(m, policies)
		return func(l record.Line) error { return again.recomputeDecision(ctx, l) }
	})
	if err != nil {
		return nil, err
	}
	out.Recomputed = again.result
	return out, nil
}

// CheckArchive is VerifyArchive without making decisions again.
func CheckArchive(from io.Reader, by *bundle.Verification) (*Manifest, error) {
	out, err := readArchive(from, by, func(*Manifest, map[string][]byte) func(record.Line) error {
		return func(record.Line) error { return nil }
	})
	if err != nil {
		return nil, err
	}
	return out.Manifest, nil
}

// readArchive reads an archive to its end and checks its files. begin returns what is called with each decision.
func readArchive(from io.Reader, by *bundle.Verification, begin func(*Manifest, map[string][]byte) func(record.Line) error) (*Report, error) {
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
	each := begin(out.Manifest, policies)
	for _, h := range out.Manifest.Hours {
		if err := a.readHour(h, out.Manifest, each); err != nil {
			return nil, err
		}
	}
	return out, a.checkEnd()
}

// archive is one that is being read.
type archive struct {
	source *source
	zipped *gzip.Reader
	tar    *tar.Reader
	// ahead is a file that was found in place of an optional one.
	ahead *tar.Header
}

// source notes an error of reading, which is not about the archive.
type source struct {
	*bufio.Reader
	failed error
}

func newSource(from io.Reader) *source {
	s := &source{}
	s.Reader = bufio.NewReader(readerFunc(func(p []byte) (int, error) {
		n, err := from.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			s.failed = fmt.Errorf("reading the archive: %w", err)
		}
		return n, err
	}))
	return s
}

// readerFunc is a function that reads.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func openArchive(from io.Reader) (*archive, error) {
	a := &archive{source: newSource(from)}
	var err error
	if a.zipped, err = gzip.NewReader(a.source); err != nil {
		if a.source.failed != nil {
			return nil, a.source.failed
		}
		return nil, TamperedError{Err: fmt.Errorf("the file is no .tar.gz file: %w", err)}
	}
	a.zipped.Multistream(false)
	a.tar = tar.NewReader(a.zipped)
	return a, nil
}

// largestEnd is how many bytes of zeros may follow the last file: tar fills its last block.
const largestEnd = 1 << 20

// checkEnd checks that nothing comes behind the last file.
func (a *archive) checkEnd() error {
	h, err := a.nextFile()
	switch {
	case err == nil:
		return TamperedError{h.Name, errors.New("the manifest does not name the file")}
	case !errors.Is(err, io.EOF):
		return a.explainError("", err)
	}
	rest, err := io.ReadAll(io.LimitReader(a.zipped, largestEnd+1))
	if err != nil {
		return a.explainError("", err)
	}
	if len(rest) > largestEnd || len(bytes.Trim(rest, "\x00")) > 0 {
		return TamperedError{Err: errors.New("there is something behind the last file of the archive")}
	}
	switch _, err := a.source.ReadByte(); {
	case err == nil:
		return TamperedError{Err: errors.New("there is something behind the archive")}
	case a.source.failed != nil:
		return a.source.failed
	}
	return nil
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
	switch {
	case a.source.failed != nil:
		return a.source.failed
	case errors.As(err, &tampered):
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
func (a *archive) readHour(h Hour, m *Manifest, each func(record.Line) error) error {
	header, err := a.openFile(h.File)
	if err != nil {
		return err
	}
	if header.Size != h.Bytes {
		return TamperedError{h.File, errChanged}
	}
	sum := &countingHash{Hash: sha256.New()}
	last, n, size := line{}, 0, int64(0)
	err = record.ReadEachLine(io.TeeReader(a.tar, sum), func(l record.Line) error {
		n++
		size += int64(len(l.Text)) + 1
		if err := checkLine(h, m, l); err != nil {
			return TamperedError{h.File, fmt.Errorf("line %d: %w", n, err)}
		}
		now := line{text: l.Text, time: l.Record.Time, origin: l.Record.Origin, id: l.Record.ID}
		if n > 1 && compareLines(last, now) >= 0 {
			return TamperedError{h.File, fmt.Errorf("line %d is not behind the one before it", n)}
		}
		now.text = append(last.text[:0], l.Text...) // the line is valid until this returns
		last = now
		return each(l)
	})
	switch {
	case sum.bytes == h.Bytes && hex.EncodeToString(sum.Sum(nil)) != h.SHA256: // whatever else is wrong follows from that
		return TamperedError{h.File, errChanged}
	case err != nil:
		return a.explainHour(h, err)
	case n != h.Decisions:
		return TamperedError{h.File, fmt.Errorf("it has %d decisions, and the manifest says %d", n, h.Decisions)}
	case size != h.Bytes:
		return TamperedError{h.File, errors.New("there is something between its lines")}
	}
	return nil
}

// checkLine checks that a line is a decision of the hour.
func checkLine(h Hour, m *Manifest, l record.Line) error {
	at := l.Record.Time
	switch {
	case l.Skipped != "":
		return fmt.Errorf("this regatta does not make it again: %s", l.Skipped)
	case at.Before(h.Start) || !at.Before(h.Start.Add(time.Hour)):
		return fmt.Errorf("the decision is of %s, which is not in this hour", at.UTC().Format(time.RFC3339))
	case m.Since != nil && at.Before(*m.Since) || m.Until != nil && !at.Before(*m.Until):
		return errors.New("the decision is not between since and until")
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
