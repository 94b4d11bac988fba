// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/charts/release/helmchart"
	"github.com/regatta-sh/regatta/charts/release/image"
)

// chartFolder is the chart, and changelogFile what users read of its versions.
const (
	chartFolder   = "charts/kruise"
	changelogFile = "charts/kruise/CHANGELOG.md"
)

// CheckVersion refuses what is no version of a release.
func CheckVersion(text string) error {
	parsed, err := version.ParseSemantic(text)
	switch {
	case text == "":
		return errors.New("the version is missing, such as v0.2.0")
	case err != nil || !strings.HasPrefix(text, "v") || text != "v"+parsed.String():
		return fmt.Errorf("the version is %q, want a v and a semantic version, such as v0.2.0 or v0.2.0-rc.1", text)
	case parsed.BuildMetadata() != "":
		return fmt.Errorf("the version is %q, and no tag of an image has a +", text)
	}
	return nil
}

// CheckSources finds what the sources in a folder are, and refuses those that a release cannot be made of. Where it is to be pushed, the commit
// needs the tag of the version.
func CheckSources(ctx context.Context, source, version string, pushed bool) (image.Origin, error) {
	origin, err := image.FindOrigin(ctx, source)
	if err != nil {
		return origin, err
	}
	changed, err := image.RunGit(ctx, source, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return origin, err
	}
	if changed != "" {
		lines := strings.Split(changed, "\n")
		return origin, fmt.Errorf("the sources differ from their commit in %d files, and a release is made of a commit: commit or remove them:\n%s",
			len(lines), strings.Join(lines[:min(len(lines), 10)], "\n"))
	}
	if err := requireNothingIgnored(ctx, source); err != nil {
		return origin, err
	}
	tag := "refs/tags/" + version + "^{commit}"
	tagged, err := image.RunGit(ctx, source, "for-each-ref", "--format=%(refname)", "refs/tags/"+version)
	if err != nil {
		return origin, err
	}
	if tagged == "" {
		if pushed {
			return origin, fmt.Errorf("the commit %.12s has no tag %s, by which users find its sources: git tag %s, and push it", origin.Revision, version, version)
		}
		return origin, nil
	}
	commit, err := image.RunGit(ctx, source, "rev-parse", tag)
	if err != nil {
		return origin, err
	}
	if commit != origin.Revision {
		return origin, fmt.Errorf("%s is the tag of commit %.12s, and the sources are those of %.12s: git checkout %s, or choose another version", version, commit, origin.Revision, version)
	}
	return origin, nil
}

// requireNothingIgnored refuses sources with files that Git leaves out and a release would have: in its programs, or in its chart, where a values file
// of the person that makes the release would be published.
func requireNothingIgnored(ctx context.Context, source string) error {
	found, err := image.ListIgnoredSources(ctx, source)
	if err != nil {
		return err
	}
	ignored, err := image.RunGit(ctx, source, "ls-files", "--others", "--ignored", "--exclude-standard", "--", chartFolder)
	if err != nil {
		return err
	}
	if ignored != "" {
		packed, err := helmchart.ListFiles(filepath.Join(source, chartFolder))
		if err != nil {
			return err
		}
		for _, file := range packed {
			if named := path.Join(chartFolder, file); slices.Contains(strings.Split(ignored, "\n"), named) && !slices.Contains(found, named) {
				found = append(found, named)
			}
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%d files that Git ignores would be a part of the release, and a release is made of a commit: remove them:\n%s",
			len(found), strings.Join(found[:min(len(found), 10)], "\n"))
	}
	return nil
}

// ReadNotes reads what the changelog says of a version. The candidates of a release have its news where they have none of their own.
func ReadNotes(source, version string) (string, error) {
	text, err := os.ReadFile(filepath.Join(source, changelogFile))
	if err != nil {
		return "", fmt.Errorf("reading the changelog: %w", err)
	}
	release, _, _ := strings.Cut(version, "-")
	sections := readSections(string(text))
	for _, named := range []string{version, release} {
		for _, s := range sections {
			if s.version == bareVersion(named) && s.text != "" {
				return linkToSources(s.text, version), nil
			}
		}
	}
	return "", fmt.Errorf("%s has no section %q with what users notice of it", changelogFile, "## "+version)
}

// section is what a changelog says of a version. The version is empty where nothing was released of it.
type section struct{ version, text string }

var heading = regexp.MustCompile(`(?m)^## +(.*)$`)

// versionOf matches a heading such as v0.2.0, [0.2.0] or 0.2.0 - 2026-11-01.
var versionOf = regexp.MustCompile(`^\[?v?(\d+\.\d+\.\d+[-.0-9A-Za-z]*)\]?(?: .*)?$`)

func readSections(text string) []section {
	var out []section
	found := heading.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		s := section{text: strings.TrimSpace(text[at[1]:end])}
		if s.text != "" {
			s.text += "\n"
		}
		if match := versionOf.FindStringSubmatch(strings.TrimSpace(text[at[2]:at[3]])); match != nil {
			s.version = match[1]
		}
		out = append(out, s)
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// linkToSources has the links of the changelog, which are read elsewhere, lead to the sources of a version.
func linkToSources(text, version string) string {
	return link.ReplaceAllStringFunc(text, func(found string) string {
		target := link.FindStringSubmatch(found)[1]
		switch {
		case strings.Contains(target, "://"):
			return found
		case strings.HasPrefix(target, "#"):
			target = changelogFile + target
		default:
			target = path.Join(path.Dir(changelogFile), target)
		}
		return fmt.Sprintf("](%s/blob/%s/%s)", image.Sources, version, target)
	})
}

// Ways in which a document names the version to install.
var namedVersions = []*regexp.Regexp{
	regexp.MustCompile(`regatta\S* .*--version[= ]v?(\d+\.\d+\.\d+[-.0-9A-Za-z]*)`),
	regexp.MustCompile(`regatta-sh/(?:regatta|charts/kruise):v?(\d+\.\d+\.\d+[-.0-9A-Za-z]*)`),
	regexp.MustCompile(`(?:releases/download/|release\.yaml@refs/tags/)v(\d+\.\d+\.\d+[-.0-9A-Za-z]*)`),
	regexp.MustCompile(`\bregatta(?:-image)?-v(\d+\.\d+\.\d+)`),
	regexp.MustCompile(`\bkruise-(\d+\.\d+\.\d+[-.0-9A-Za-z]*)\.tgz`),
	regexp.MustCompile(`\bmake release VERSION=v(\d+\.\d+\.\d+[-.0-9A-Za-z]*)`),
}

// CheckDocuments refuses documents that name another version than the one that is released, by line, and a chart that is another one. Those of
// a candidate name the release.
func CheckDocuments(ctx context.Context, source, version string) error {
	release, _, _ := strings.Cut(bareVersion(version), "-")
	isRight := func(named string) bool { return named == release || named == bareVersion(version) }
	var wrong []string
	chart, err := readChartVersions(source)
	if err != nil {
		return err
	}
	for field, named := range chart {
		if !isRight(named) {
			wrong = append(wrong, fmt.Sprintf("%s/Chart.yaml: %s is %s", chartFolder, field, named))
		}
	}
	files, err := image.RunGit(ctx, source, "ls-files", "--", "*.md")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(files) {
		if file == changelogFile {
			continue
		}
		text, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return fmt.Errorf("reading a document: %w", err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, named := range namedVersions {
				for _, match := range named.FindAllStringSubmatch(line, -1) {
					if found := strings.TrimRight(match[1], "."); !isRight(found) {
						wrong = append(wrong, fmt.Sprintf("%s:%d names %s", file, i+1, found))
					}
				}
			}
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("the version is %s, and documents name another one:\n%s", version, strings.Join(wrong, "\n"))
	}
	return nil
}

// readChartVersions reads the versions that the chart of the sources names, by field.
func readChartVersions(source string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(source, chartFolder, "Chart.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return nil, fmt.Errorf("reading %s/Chart.yaml: %w", chartFolder, err)
	}
	return map[string]string{"version": chart.Version, "appVersion": chart.AppVersion}, nil
}
