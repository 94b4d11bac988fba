// SPDX-License-Identifier: Apache-2.0

package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of an archive.
const (
	// leastSize has room for the files that every report needs.
	leastSize = 1 << 20
	// mostOfFile is how many bytes of a file that is no log are kept: an object is not larger.
	mostOfFile = 2 << 20
	// perEntry is how many bytes a file takes besides its contents: headers, and padding.
	perEntry = 4 << 10
	// ofManifest limits the manifest to this part of the archive: an eighth.
	ofManifest = 8
)

// file is a file of an archive.
type file struct {
	name string
	data []byte
}

// archive gathers files within a number of bytes, and says what was left out.
type archive struct {
	scrub *scrubber
	most  int64
	used  int64
	files []file
	left  []string // lines of the manifest
}

// addFile keeps a file, unless there is no room for it.
func (a *archive) addFile(name string, data []byte) bool {
	name = cleanName(name)
	size := int64(len(data)) + perEntry
	if a.used+size > a.most-a.most/ofManifest {
		a.recordOmission(name, "there is no room left: raise --max-size")
		return false
	}
	a.used += size
	a.files = append(a.files, file{name, data})
	return true
}

// addDocument keeps a value as JSON, masked.
func (a *archive) addDocument(name string, v any) {
	plain, err := plainOf(v)
	if err != nil {
		a.recordOmission(name, err.Error())
		return
	}
	text, err := a.scrub.maskDocument(plain)
	a.addText(name, text, err)
}

func (a *archive) addText(name string, text []byte, err error) {
	switch {
	case err != nil:
		a.recordOmission(name, err.Error())
	case len(text) > mostOfFile:
		a.recordOmission(name, fmt.Sprintf("it has %d bytes", len(text)))
	default:
		a.addFile(name, text)
	}
}

// recordOmission notes what is not in the archive, and why.
func (a *archive) recordOmission(what, why string) {
	a.left = append(a.left, oneLine(what+": "+a.scrub.maskText(why)))
}

// mostInLine is how long a line of the manifest may be.
const mostInLine = 500

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostInLine {
		text = strings.ToValidUTF8(text[:mostInLine], "") + "…"
	}
	return text
}

// cleanName makes a name into a path inside the archive: names of objects have no slashes, except by mistake.
func cleanName(name string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)), "/")
}

// writeTo replaces what was hidden in all files, and writes them behind the manifest. It returns how many files there are.
func (a *archive) writeTo(to io.Writer, header string, now time.Time) (int, error) {
	replace := a.scrub.newReplacer()
	room := a.most - a.most/ofManifest
	var kept []file
	for _, f := range a.files {
		f.name, f.data = replace.Replace(f.name), []byte(replace.Replace(string(f.data))) // the replacement may be longer
		if size := int64(len(f.data)) + perEntry; size <= room {
			room -= size
			kept = append(kept, f)
		} else {
			a.recordOmission(f.name, "there is no room left: raise --max-size")
		}
	}
	kept = append([]file{{"manifest.txt", []byte(replace.Replace(a.formatManifest(header, kept)))}}, kept...)
	if most := int(a.most/ofManifest) - perEntry - int(a.most/1000); len(kept[0].data) > most { // a thousandth for contents that do not compress
		kept[0].data = append(kept[0].data[:most-64], "\n(the rest of this listing is left out)\n"...)
	}
	zipped := gzip.NewWriter(to)
	out := tar.NewWriter(zipped)
	for _, f := range kept {
		if err := out.WriteHeader(&tar.Header{Name: "regatta-support/" + f.name, Mode: 0o600, Size: int64(len(f.data)), ModTime: now}); err != nil {
			return 0, fmt.Errorf("writing %s: %w", f.name, err)
		}
		if _, err := out.Write(f.data); err != nil {
			return 0, fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	if err := out.Close(); err != nil {
		return 0, fmt.Errorf("writing the archive: %w", err)
	}
	return len(kept), zipped.Close()
}

// formatManifest lists what is in the archive, and what is not.
func (a *archive) formatManifest(header string, kept []file) string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\nSecrets are never read. Values of environment variables, arguments, headers, annotations of others, files of policy bundles and\nwhat looks like a secret are masked. Look through it before you send it.\n\nIN THE ARCHIVE\n", header)
	for _, f := range kept {
		fmt.Fprintf(&out, "%10d  %s\n", len(f.data), f.name)
	}
	fmt.Fprintf(&out, "\nLEFT OUT\n")
	lines := slices.Clone(a.left)
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}
