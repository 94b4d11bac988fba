// SPDX-License-Identifier: Apache-2.0

// Package helmchart packs the chart of a release as helm package does, but the same to the last byte each time, and writes it to where
// Helm looks for charts: an index beside it, or a registry.
package helmchart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.yaml.in/yaml/v3"

	"github.com/regatta-sh/regatta/charts/release/archive"
)

// DigestAnnotation is the annotation of a packed chart that has the digest of its image. It is none of the values: an upgrade with
// --reuse-values keeps those of the chart that was there before, and would run the image of that.
const DigestAnnotation = "regatta.sh/image-digest"

// metadataFile is where a chart says its name and version.
const metadataFile = "Chart.yaml"

// Package is a packed chart.
type Package struct {
	Name, Version string
	// Metadata is what the chart says of itself.
	Metadata map[string]any
	// Content is the archive.
	Content []byte
	Created time.Time
}

// FileName is the name that Helm has for the archive.
func (p *Package) FileName() string { return p.Name + "-" + p.Version + ".tgz" }

// PackChart packs the chart in a folder as a version, whose image has a digest. The licence is packed with it.
func PackChart(folder, version string, image v1.Hash, licence []byte, created time.Time) (*Package, error) {
	files, err := readFiles(folder)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(files, func(f archive.File) bool { return f.Path == metadataFile })
	if at < 0 {
		return nil, fmt.Errorf("%s has no %s", folder, metadataFile)
	}
	if files[at].Content, err = setVersion(files[at].Content, version, image); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", metadataFile, folder, err)
	}
	p := &Package{Version: version, Created: created.UTC()}
	if err := yaml.Unmarshal(files[at].Content, &p.Metadata); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", metadataFile, folder, err)
	}
	p.Name, _ = p.Metadata["name"].(string)
	if p.Name == "" {
		return nil, fmt.Errorf("%s of %s has no name", metadataFile, folder)
	}
	files = append(files, archive.File{Path: "LICENSE", Mode: 0o644, Content: licence})
	for i := range files {
		files[i].Path = path.Join(p.Name, files[i].Path)
	}
	if p.Content, err = archive.PackTarGz(files, created); err != nil {
		return nil, err
	}
	return p, nil
}

// ListFiles lists the files of a chart that are packed, by their paths in its folder.
func ListFiles(folder string) ([]string, error) {
	files, err := readFiles(folder)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, one := range files {
		out = append(out, one.Path)
	}
	return out, nil
}

// readFiles reads the files of a chart that Helm would pack.
func readFiles(folder string) ([]archive.File, error) {
	ignored, err := readIgnored(folder)
	if err != nil {
		return nil, err
	}
	var files []archive.File
	err = filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file == folder:
			return nil
		case ignored.isIgnored(entry.Name(), entry.IsDir()) && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir() || ignored.isIgnored(entry.Name(), false):
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", file)
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files = append(files, archive.File{Path: filepath.ToSlash(relative), Mode: 0o644, Content: content})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return files, nil
}

// ignoreFile names what is no part of a chart.
const ignoreFile = ".helmignore"

// ignored are the patterns of names that are no part of a chart.
type ignored struct{ anything, folders []string }

// readIgnored reads the patterns of a chart. Of what Helm understands it takes those of names, which need no folder above them.
func readIgnored(folder string) (ignored, error) {
	var out ignored
	text, err := os.ReadFile(filepath.Join(folder, ignoreFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("reading what is no part of the chart: %w", err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, isFolder := strings.CutSuffix(line, "/")
		if _, err := path.Match(pattern, ""); err != nil || strings.ContainsAny(pattern, "/!") {
			return out, fmt.Errorf("%s: %q is no pattern of a name", ignoreFile, line)
		}
		if isFolder {
			out.folders = append(out.folders, pattern)
		} else {
			out.anything = append(out.anything, pattern)
		}
	}
	return out, nil
}

// isIgnored reports whether a name is no part of the chart.
func (i ignored) isIgnored(name string, isFolder bool) bool {
	patterns := i.anything
	if isFolder {
		patterns = slices.Concat(i.anything, i.folders)
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // the pattern was checked
		return ok
	})
}

// setVersion sets the version of a chart and of what it installs, and the digest of its image. All other keys stay, with their comments.
func setVersion(metadata []byte, version string, image v1.Hash) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(metadata, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no map")
	}
	chart := document.Content[0]
	for _, key := range []string{"version", "appVersion"} {
		found := lookUp(chart, key)
		if found == nil {
			return nil, fmt.Errorf("it has no %s", key)
		}
		found.SetString(version)
		found.Style = yaml.DoubleQuotedStyle
	}
	annotations := lookUp(chart, "annotations")
	if annotations == nil {
		annotations = &yaml.Node{Kind: yaml.MappingNode}
		chart.Content = append(chart.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "annotations"}, annotations)
	}
	if annotations.Kind != yaml.MappingNode || lookUp(annotations, DigestAnnotation) != nil {
		return nil, fmt.Errorf("annotations: want a map without %s", DigestAnnotation)
	}
	if err := setVersionOfAnnotations(annotations, version); err != nil {
		return nil, err
	}
	annotations.Content = append(annotations.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: DigestAnnotation}, &yaml.Node{Kind: yaml.ScalarNode, Value: image.String()})
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Annotations that Artifact Hub shows, of which the sources say what is so of the release. A candidate has another version than it.
const (
	prereleaseAnnotation = "artifacthub.io/prerelease"
	imagesAnnotation     = "artifacthub.io/images"
)

// imageVersion matches the tag of an image among the images of a chart.
var imageVersion = regexp.MustCompile(`(?m)^( *image: [^ ]+:)[^:/ \n]+$`)

// setVersionOfAnnotations has the annotations of a chart say a version.
func setVersionOfAnnotations(annotations *yaml.Node, version string) error {
	if candidate := lookUp(annotations, prereleaseAnnotation); candidate != nil {
		candidate.Value = strconv.FormatBool(strings.Contains(version, "-"))
	}
	images := lookUp(annotations, imagesAnnotation)
	if images == nil {
		return nil
	}
	if !imageVersion.MatchString(images.Value) {
		return fmt.Errorf("annotations: %s names no image with its tag", imagesAnnotation)
	}
	images.Value = imageVersion.ReplaceAllString(images.Value, "${1}"+version)
	return nil
}

// lookUp returns the value of a key of a map, nil if there is none.
func lookUp(in *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == key {
			return in.Content[i+1]
		}
	}
	return nil
}
