// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// The files of an archive, and the folders of the others.
const (
	manifestFile   = "manifest.json"
	signatureFile  = ".signatures.json"
	policyFolder   = "policies"
	decisionFolder = "decisions"
)

// version is that of the format.
const version = 1

// Limits on what is read of an archive, in bytes but for mostHours.
const (
	largestManifest  = 16 << 20
	largestSignature = 1 << 20
	largestPolicy    = 16 << 20
	largestPolicies  = 256 << 20 // of all together, since they are kept in memory
	mostHours        = 100_000
	mostNames        = 100 // of missing bundles, each of longestName bytes
	longestName      = 400
)

// builtinName is the name of the built-in policies in records.
const builtinName = "builtin"

// Manifest says what is in an archive.
type Manifest struct {
	// Version is that of the format.
	Version int `json:"version"`
	// Created is when the archive was exported.
	Created time.Time `json:"created"`
	// Since and Until are the times between which decisions were exported, Until itself excluded; left out where there was no bound.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// Previous is the last link of the archive whose chain this one continues; empty if it begins a chain.
	Previous string `json:"previous,omitempty"`
	// Hours are in the order of time. Hours without decisions are left out.
	Hours []Hour `json:"hours"`
	// Policies are in the order of their revisions.
	Policies []Policy `json:"policies"`
	// Missing are the bundles that decisions name, as NAME@REVISION, and that the archive does not have; the first of them if there are many.
	Missing []string `json:"missing,omitempty"`
	// LeftOut is how many lines of the log were no decisions that a controller acted on, at a point that the exporter knew.
	LeftOut int `json:"leftOut,omitempty"`
}

// Hour has the decisions of an hour.
type Hour struct {
	// Start is when the hour begins.
	Start time.Time `json:"start"`
	File  string    `json:"file"`
	// Decisions is how many there are, and Bytes the size of the file.
	Decisions int    `json:"decisions"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"`
	// Link is the SHA-256 over the link before it and all other fields.
	Link string `json:"link"`
}

// Policy is a bundle.
type Policy struct {
	// Revision is the hash of its content, as records name it.
	Revision string `json:"revision"`
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
}

// LastLink is the link that the next archive continues.
func (m *Manifest) LastLink() string {
	if len(m.Hours) == 0 {
		return m.Previous
	}
	return m.Hours[len(m.Hours)-1].Link
}

// FollowsOn returns what is wrong with an archive that is to follow on another one; nil if it does. A gap between the times of the two is
// not wrong: see GapBefore.
func (m *Manifest) FollowsOn(before *Manifest) error {
	switch {
	case m.Previous != before.LastLink():
		return errors.New("an archive is missing between them, or they are not in order")
	case before.Until != nil && m.Since != nil && m.Since.Before(*before.Until):
		return fmt.Errorf("it begins at %s, before the end of the other one at %s", m.Since.Format(time.RFC3339), before.Until.Format(time.RFC3339))
	case len(m.Hours) > 0 && len(before.Hours) > 0 && m.Hours[0].Start.Before(before.Hours[len(before.Hours)-1].Start):
		return errors.New("its first hour is before the last hour of the other one")
	}
	return nil
}

// GapBefore tells of a time between two archives of which neither has the decisions; empty if there is none. Without the time that the
// earlier one ends at, or the one that the later one begins at, nothing shows whether there is one.
func (m *Manifest) GapBefore(before *Manifest) string {
	switch {
	case before.Until == nil || m.Since == nil:
		return "nothing shows whether decisions are missing between the two, since they were exported without --until and --since"
	case m.Since.After(*before.Until):
		return fmt.Sprintf("neither has the decisions between %s and %s", before.Until.Format(time.RFC3339), m.Since.Format(time.RFC3339))
	}
	return ""
}

// CountDecisions is how many decisions there are.
func (m *Manifest) CountDecisions() (n int) {
	for _, h := range m.Hours {
		n += h.Decisions
	}
	return n
}

// computeLink returns the link of an hour behind another one.
func computeLink(previous string, h Hour) string {
	return hashText(fmt.Appendf(nil, "%s\n%s\n%s\n%d\n%d\n%s\n", previous, h.Start.UTC().Format(time.RFC3339), h.File, h.Decisions, h.Bytes, h.SHA256))
}

func hashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func hourFile(start time.Time) string {
	return path.Join(decisionFolder, start.UTC().Format("2006-01-02T15")+".jsonl")
}

func policyFile(revision string) string { return path.Join(policyFolder, revision+".tar.gz") }

var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString

// encodeManifest returns the one text that a manifest has.
func encodeManifest(m *Manifest) ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// parseManifest reads a manifest, and checks all that it says of itself. A manifest has one text only, so that no field stands twice.
func parseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	again, err := encodeManifest(m)
	switch {
	case m.Version != version:
		return nil, fmt.Errorf("version is %d, and this regatta reads version %d", m.Version, version)
	case len(m.Hours) > mostHours:
		return nil, fmt.Errorf("hours has %d elements, and may have %d", len(m.Hours), mostHours)
	case len(m.Missing) > mostNames:
		return nil, fmt.Errorf("missing has %d elements, and may have %d", len(m.Missing), mostNames)
	case err != nil:
		return nil, err
	case !bytes.Equal(text, again):
		return nil, errors.New("it is not written as regatta writes it, so that readers may read it differently")
	case m.Previous != "" && !isHash(m.Previous):
		return nil, fmt.Errorf("previous is %.80q, want 64 hexadecimal digits", m.Previous)
	}
	if err := m.checkHours(); err != nil {
		return nil, err
	}
	return m, m.checkPolicies()
}

func (m *Manifest) checkHours() error {
	link, last := m.Previous, time.Time{}
	for i, h := range m.Hours {
		where := fmt.Sprintf("hours[%d]", i)
		switch {
		case !h.Start.Truncate(time.Hour).Equal(h.Start):
			return fmt.Errorf("%s.start is %s, which begins no hour", where, h.Start.Format(time.RFC3339))
		case i > 0 && !h.Start.After(last):
			return fmt.Errorf("%s.start is not after the hour before it", where)
		case h.File != hourFile(h.Start):
			return fmt.Errorf("%s.file is %.80q, want %s", where, h.File, hourFile(h.Start))
		case h.Decisions <= 0 || h.Bytes <= 0:
			return fmt.Errorf("%s has %d decisions in %d bytes, and hours without decisions are left out", where, h.Decisions, h.Bytes)
		case m.Since != nil && !h.Start.Add(time.Hour).After(*m.Since), m.Until != nil && !h.Start.Before(*m.Until):
			return fmt.Errorf("%s is not between since and until", where)
		case computeLink(link, h) != h.Link:
			return fmt.Errorf("%s.link does not follow from the link before it: the hour was changed, or one before it was changed, removed or added", where)
		}
		link, last = h.Link, h.Start
	}
	return nil
}

func (m *Manifest) checkPolicies() error {
	all := int64(0)
	for i, p := range m.Policies {
		switch {
		case !isHash(p.Revision):
			return fmt.Errorf("policies[%d].revision is %.80q, want 64 hexadecimal digits", i, p.Revision)
		case p.File != policyFile(p.Revision):
			return fmt.Errorf("policies[%d].file is %.80q, want %s", i, p.File, policyFile(p.Revision))
		case p.Bytes <= 0 || p.Bytes > largestPolicy:
			return fmt.Errorf("policies[%d].bytes is %d, and may be %d", i, p.Bytes, largestPolicy)
		case i > 0 && p.Revision <= m.Policies[i-1].Revision:
			return fmt.Errorf("policies[%d] is not behind the one before it in the order of revisions", i)
		}
		if all += p.Bytes; all > largestPolicies {
			return fmt.Errorf("policies have more than %d MiB together", largestPolicies>>20)
		}
	}
	return nil
}

// findPolicy returns the bundle of a revision; false if the archive has none.
func (m *Manifest) findPolicy(revision string) (Policy, bool) {
	i, found := slices.BinarySearchFunc(m.Policies, revision, func(p Policy, revision string) int {
		switch {
		case p.Revision < revision:
			return -1
		case p.Revision > revision:
			return 1
		}
		return 0
	})
	if !found {
		return Policy{}, false
	}
	return m.Policies[i], true
}
