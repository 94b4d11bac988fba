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
	o.Modified = strings.HasSuffix(o.Version, dirty)
	if untracked != "" && !o.Modified {
		o.Version, o.Modified = o.Version+dirty, true
	}
	if shallow == "true" {
		if _, err := RunGit(ctx, source, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err != nil {
			return o, errors.New("the clone lacks a part of the history, from which the version is computed: fetch it with git fetch --unshallow --tags, or build a commit with a tag")
		}
	}
	if epoch == "" {
		var err error
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
