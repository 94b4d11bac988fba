// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// LargestExport is how many bytes of decisions one archive may have.
const LargestExport = 512 << 20

// Export collects what goes into an archive.
type Export struct {
	since, until time.Time
	previous     string
	signing      *bundle.Signing
	lines        []line
	bytes        int
	policies     map[string]*bundle.Bundle // by revision
	named        map[string]bool           // NAME@REVISION of the bundles that decisions name
	leftOut      int
}

// line is a record as it is written.
type line struct {
	text   []byte
	time   time.Time
	origin string
	id     uint64
}

func compareLines(a, b line) int {
	return cmp.Or(a.time.Compare(b.time), strings.Compare(a.origin, b.origin), cmp.Compare(a.id, b.id), bytes.Compare(a.text, b.text))
}

// ExportOption changes an export.
type ExportOption func(*Export)

// LimitTimes leaves out decisions before since, or at until and later. A zero time is no bound.
func LimitTimes(since, until time.Time) ExportOption {
	return func(x *Export) { x.since, x.until = since, until }
}

// ContinueChain continues the chain of an earlier archive, whose last link it takes.
func ContinueChain(link string) ExportOption { return func(x *Export) { x.previous = link } }

// SignWith signs the archive.
func SignWith(with bundle.Signing) ExportOption { return func(x *Export) { x.signing = &with } }

// NewExport makes an empty export.
func NewExport(opts ...ExportOption) *Export {
	x := &Export{policies: map[string]*bundle.Bundle{}, named: map[string]bool{}}
	for _, o := range opts {
		o(x)
	}
	return x
}

// AddLine adds the decision of a line. It leaves out, and counts, lines that are no decisions which a controller acted on. Decisions
// outside of the times are left out, too. An error says that the archive would be too large.
func (x *Export) AddLine(l record.Line) error {
	if l.Skipped != "" {
		x.leftOut++
		return nil
	}
	r := l.Record
	if !x.since.IsZero() && r.Time.Before(x.since) || !x.until.IsZero() && !r.Time.Before(x.until) {
		return nil
	}
	if x.bytes += len(l.Text) + 1; x.bytes > LargestExport {
		return fmt.Errorf("the decisions are larger than the %d MiB that one archive may have; export a shorter time", LargestExport>>20)
	}
	for _, id := range r.Bundles {
		x.named[id] = true
	}
	x.lines = append(x.lines, line{text: bytes.Clone(l.Text), time: r.Time, origin: r.Origin, id: r.ID})
	return nil
}

// AddPolicies adds bundles. Bundles that no decision names are left out of the archive.
func (x *Export) AddPolicies(bundles ...*bundle.Bundle) {
	for _, b := range bundles {
		x.policies[b.Revision] = b
	}
}

// WriteArchive writes the archive, and returns what is in it.
func (x *Export) WriteArchive(w io.Writer, created time.Time) (*Manifest, error) {
	m := &Manifest{
		Version: version, Created: created.UTC(), Since: optionalTime(x.since), Until: optionalTime(x.until), Previous: x.previous,
		Hours: []Hour{}, Policies: []Policy{}, LeftOut: x.leftOut,
	}
	parts := map[string][]byte{}
	if err := errors.Join(x.buildHours(m, parts), x.buildPolicies(m, parts)); err != nil {
		return nil, err
	}
	text, err := encodeManifest(m)
	if err != nil {
		return nil, err
	}
	if _, err := parseManifest(text); err != nil {
		return nil, fmt.Errorf("the archive could not be verified: %w", err)
	}
	names := []string{manifestFile}
	parts[manifestFile] = text
	if x.signing != nil {
		signature, err := bundle.SignFiles(map[string]string{manifestFile: string(parts[manifestFile])}, *x.signing)
		if err != nil {
			return nil, err
		}
		names, parts[signatureFile] = append(names, signatureFile), []byte(signature)
	}
	for _, p := range m.Policies {
		names = append(names, p.File)
	}
	for _, h := range m.Hours {
		names = append(names, h.File)
	}
	return m, packParts(w, names, parts)
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// buildHours puts the decisions in order, and makes the chain. Of lines that are the same one is kept: the logs of two exports may have
// it. Two lines of one decision that differ are an error.
func (x *Export) buildHours(m *Manifest, parts map[string][]byte) error {
	slices.SortStableFunc(x.lines, compareLines)
	x.lines = slices.CompactFunc(x.lines, func(a, b line) bool { return compareLines(a, b) == 0 })
	said := map[string]bool{}
	for _, l := range x.lines {
		name := decisionName(l.origin, l.id)
		if name == "" || name == "0" { // the log has no ids
			continue
		}
		if said[name] {
			return fmt.Errorf("two lines of the log are of decision %s, and differ: one of them was changed", name)
		}
		said[name] = true
	}
	link := x.previous
	for rest := x.lines; len(rest) > 0; {
		h := Hour{Start: rest[0].time.UTC().Truncate(time.Hour)}
		var text []byte
		for len(rest) > 0 && rest[0].time.Before(h.Start.Add(time.Hour)) {
			text = append(append(text, rest[0].text...), '\n')
			rest = rest[1:]
			h.Decisions++
		}
		h.File, h.Bytes, h.SHA256 = hourFile(h.Start), int64(len(text)), hashText(text)
		h.Link = computeLink(link, h)
		link, parts[h.File] = h.Link, text
		m.Hours = append(m.Hours, h)
	}
	return nil
}

// buildPolicies packs the bundles that decisions name, and notes those that are missing.
func (x *Export) buildPolicies(m *Manifest, parts map[string][]byte) error {
	packed := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(x.named)) {
		_, revision := decision.SplitBundleID(id)
		b, ok := x.policies[revision]
		if !ok {
			if len(m.Missing) < mostNames {
				m.Missing = append(m.Missing, decision.TruncateText(id, longestName))
			}
			continue
		}
		if packed[revision] {
			continue
		}
		packed[revision] = true
		var archive bytes.Buffer
		if err := b.PackArchive(&archive); err != nil {
			return fmt.Errorf("packing bundle %s: %w", b.Name, err)
		}
		p := Policy{Revision: revision, File: policyFile(revision), Bytes: int64(archive.Len()), SHA256: hashText(archive.Bytes())}
		parts[p.File] = archive.Bytes()
		m.Policies = append(m.Policies, p)
	}
	slices.SortFunc(m.Policies, func(a, b Policy) int { return strings.Compare(a.Revision, b.Revision) })
	return nil
}

func packParts(w io.Writer, names []string, parts map[string][]byte) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, name := range names {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(parts[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := archive.Write(parts[name]); err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return nil
}
