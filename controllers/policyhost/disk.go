// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// disk is a directory with the files of all active bundles, for a process that starts while the API
// server cannot be reached. All bundles are in one file, so that either all of them are stored or
// none.
type disk struct{ Dir string }

// stored is a bundle on disk.
type stored struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Canary has the namespaces of a bundle that decides only in these.
	Canary []string `json:"canary,omitempty"`
	// Withheld is true for a bundle that was rolled back.
	Withheld bool              `json:"withheld,omitempty"`
	Files    map[string]string `json:"files"`
	// Since is when the bundle was accepted.
	Since time.Time `json:"since,omitzero"`
	// Content is the revision of the bundle.
	Content string `json:"content,omitempty"`
	// Signed has the result of the verification, if the signature was verified.
	Signed *signed `json:"signed,omitempty"`
	// Missing is why the bundle, which should decide, does not. It has no files then.
	Missing string `json:"missing,omitempty"`
}

// signed is by which key and for what a bundle was signed.
type signed struct {
	Key   string `json:"key"`
	Scope string `json:"scope,omitempty"`
}

const (
	diskFile = "bundles.json"
	// mostOnDisk bounds what is written, and what is read, since the file may have been replaced.
	mostOnDisk = 64 << 20
)

// Write replaces the file with the given bundles, after a checksum of them.
func (d *disk) Write(bundles []stored) error {
	data, err := json.Marshal(bundles)
	if err != nil {
		return fmt.Errorf("encoding policy bundles: %w", err)
	}
	data = append([]byte(bundlerevision.ArchiveDigest(data)+"\n"), data...)
	if len(data) > mostOnDisk {
		return fmt.Errorf("writing policy bundles to %s: they have %d bytes, more than %d", d.Dir, len(data), mostOnDisk)
	}
	if err := writeFile(d.Dir, diskFile, data); err != nil {
		return fmt.Errorf("writing policy bundles: %w", err)
	}
	return nil
}

// writeFile replaces a file atomically, and makes the directory if it does not exist.
func writeFile(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync() // otherwise the name may be on disk before the contents
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // an incomplete file is not needed
	}
	return err
}

// Read reads the bundles that were written last; nil if none were.
func (d *disk) Read() ([]stored, error) {
	path := filepath.Join(d.Dir, diskFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading policy bundles: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostOnDisk+1))
	if err != nil {
		return nil, fmt.Errorf("reading policy bundles: %w", err)
	}
	if len(data) > mostOnDisk {
		return nil, fmt.Errorf("reading policy bundles from %s: it has more than %d bytes", path, mostOnDisk)
	}
	sum, data, _ := bytes.Cut(data, []byte("\n"))
	if string(sum) != bundlerevision.ArchiveDigest(data) {
		return nil, fmt.Errorf("reading policy bundles from %s: it was torn or changed, as its checksum does not fit", path)
	}
	bundles := []stored{}
	if err := json.Unmarshal(data, &bundles); err != nil {
		return nil, fmt.Errorf("reading policy bundles from %s: %w", path, err)
	}
	return bundles, nil
}

// ErrNothingOnDisk reports a directory without stored bundles.
var ErrNothingOnDisk = errors.New("there are no policy bundles on disk")

// RestoreStored makes the bundles on disk active. A bundle that does not compile any more is missing.
// It returns how many bundles there are.
func (l *library) RestoreStored(ctx context.Context, d *disk) (int, error) {
	found, err := d.Read()
	if err != nil {
		return 0, err
	}
	if found == nil {
		return 0, ErrNothingOnDisk
	}
	stands := map[Key]Stages{}
	for _, s := range found {
		key := s.key()
		if s.Missing != "" {
			stage := stands[key]
			stage.Missing = append(stage.Missing, missingFromDisk(key, s.Canary, errors.New(s.Missing)))
			stands[key] = stage
			continue
		}
		err := l.marks.beginLoad(s.Content, key)
		var b *bundle.Bundle
		if err == nil {
			if b, err = s.readBundle(); err != nil {
				l.marks.clearEntry(s.Content)
			}
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "A policy bundle of the disk is not enforced", "bundle", key)
			stage := stands[key]
			stage.Missing = append(stage.Missing, missingFromDisk(key, s.Canary, err))
			stands[key] = stage
			continue
		}
		placeBundle(stands, b)
	}
	for _, key := range slices.SortedFunc(maps.Keys(stands), compareKeys) {
		stage := stands[key]
		err := l.PutStages(ctx, key, stage)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "A policy bundle of the disk is not enforced", "bundle", key)
			less := Stages{Missing: stage.Missing}
			for _, b := range stage.decidingBundles() {
				less.Missing = append(less.Missing, missingFromDisk(key, b.Canary, err))
			}
			if err := l.PutStages(ctx, key, less); err != nil {
				return 0, err
			}
		}
		for _, b := range stage.decidingBundles() {
			l.marks.scheduleClear(b.Revision)
		}
	}
	return len(stands), nil
}

func (s stored) key() Key { return Key{Namespace: s.Namespace, Name: s.Name} }

// readBundle makes a bundle from its files on disk. Its signature was verified before they were written.
func (s stored) readBundle() (*bundle.Bundle, error) {
	b, err := bundle.FromFiles(s.Name, s.Files, s.bundleOptions()...)
	if err == nil && s.Signed != nil {
		b.Signature = &bundle.Signature{Verified: true, Key: s.Signed.Key, Scope: s.Signed.Scope}
	}
	return b, err
}

func (s stored) bundleOptions() (out []bundle.Option) {
	out = append(out, bundle.WithSince(s.Since))
	switch {
	case s.Namespace != "":
		out = append(out, bundle.AsTenant(s.Namespace))
	case len(s.Canary) > 0:
		out = append(out, bundle.AsCanary(s.Canary...))
	}
	if s.Withheld {
		out = append(out, bundle.AsWithheld())
	}
	return out
}

// KeepOn stores the active bundles on a disk from now on. It must be called after all bundles are
// loaded: a part of them must not replace the last good set.
func (l *library) KeepOn(d *disk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disk, l.onDisk = d, ""
	l.saveToDisk()
}

// saveToDisk writes the active bundles, if they changed. Policies decide even if the disk is full.
func (l *library) saveToDisk() {
	now, lacking := allBut(l.stands, Key{}), storedMissing(l.stands)
	revision := fmt.Sprint(now.Revision(), lacking)
	if l.disk == nil || l.onDisk == revision {
		return
	}
	all := lacking
	for _, b := range now {
		s := stored{Namespace: b.Namespace, Name: b.Name, Canary: b.Canary, Withheld: b.Withheld, Since: b.Since, Files: b.Files, Content: b.Revision}
		if by := b.Signature; by != nil && by.Verified {
			s.Signed = &signed{Key: by.Key, Scope: by.Scope}
		}
		all = append(all, s)
	}
	if err := l.disk.Write(all); err != nil {
		ctrl.Log.Error(err, "The policies are not on disk for the next start")
	}
	l.onDisk = revision
}

// storedMissing returns entries for the bundles that should decide but cannot, so that a process that starts without
// the API server does not decide as if they did not exist. Such an entry is missing for all points that a bundle of
// its kind may take part in.
func storedMissing(stands map[Key]Stages) []stored {
	out := []stored{}
	for _, key := range slices.SortedFunc(maps.Keys(stands), compareKeys) {
		for _, m := range stands[key].Missing {
			s := stored{Namespace: key.Namespace, Name: key.Name, Missing: m.Reason}
			if key.Namespace == "" {
				s.Canary = m.Namespaces
			}
			out = append(out, s)
		}
	}
	return out
}
