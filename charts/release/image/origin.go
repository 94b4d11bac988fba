// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// compiledPatterns are the files that programs are built of. Another one that Git does not know, such as an archive that was written by the
// build before, changes nothing.
func compiledPatterns() []string {
	return []string{"*.go", "*.rego", "*.json", "*.yaml", "*.md", "go.mod", "go.sum", "go.work"}
}

// FindOrigin asks Git what the sources in a folder are. SOURCE_DATE_EPOCH, in seconds, is the time of the build if it is set, as other
// builds that are reproducible have it.
func FindOrigin(ctx context.Context, source string) (Origin, error) {
	var o Origin
	epoch, shallow, untracked := os.Getenv("SOURCE_DATE_EPOCH"), "", ""
	for _, ask := range []struct {
		into *string
		args []string
	}{
		{&o.Revision, []string{"rev-parse", "HEAD"}},
		// As many digits as a clone finds unique differ from clone to clone.
		{&o.Version, []string{"describe", "--tags", "--always", "--abbrev=12", "--dirty", "--match", "v[0-9]*"}},
		{&untracked, append([]string{"ls-files", "--others", "--exclude-standard", "--"}, compiledPatterns()...)},
		{&shallow, []string{"rev-parse", "--is-shallow-repository"}},
	} {
		text, err := RunGit(ctx, source, ask.args...)
		if err != nil {
			return o, err
		}
		*ask.into = text
	}
	ignored, err := ListIgnoredSources(ctx, source)
	if err != nil {
		return o, err
	}
	o.Modified = strings.HasSuffix(o.Version, dirty)
	if (untracked != "" || len(ignored) > 0) && !o.Modified {
		o.Version, o.Modified = o.Version+dirty, true
	}
	if shallow == "true" {
		if _, err := RunGit(ctx, source, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err != nil {
			return o, errors.New("the clone lacks a part of the history, from which the version is computed: fetch it with git fetch --unshallow --tags, or build a commit with a tag")
		}
	}
	if epoch == "" {
		if epoch, err = RunGit(ctx, source, "log", "-1", "--format=%ct"); err != nil {
			return o, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return o, fmt.Errorf("SOURCE_DATE_EPOCH: %q is no number of seconds", epoch)
	}
	o.Created = time.Unix(seconds, 0).UTC()
	return o, nil
}

// ListIgnoredSources lists files that programs may be built of and that Git ignores, by the settings of the repository or of the user. Git does
// not call such sources changed, but the compiler takes the files. Those of folders that have nothing of the commit, such as that of
// a release, are none of them.
func ListIgnoredSources(ctx context.Context, source string) ([]string, error) {
	tracked, err := RunGit(ctx, source, "ls-tree", "--name-only", "HEAD")
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for name := range strings.Lines(tracked) {
		folders[strings.TrimSpace(name)] = true
	}
	ignored, err := RunGit(ctx, source, append([]string{"ls-files", "--others", "--ignored", "--exclude-standard", "--"}, compiledPatterns()...)...)
	if err != nil {
		return nil, err
	}
	var out []string
	for file := range strings.Lines(ignored) {
		file = strings.TrimSpace(file)
		if folder, _, below := strings.Cut(file, "/"); below && folders[folder] {
			out = append(out, file)
		}
	}
	return out, nil
}

// dirty is how Git ends the version of sources that differ from their commit.
const dirty = "-dirty"

// RunGit runs Git in a folder, and returns what it prints.
func RunGit(ctx context.Context, folder string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...)
	output, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(bytes.TrimSpace(output)), nil
}
