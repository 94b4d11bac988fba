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

// FindOrigin asks Git what the sources in a folder are. SOURCE_DATE_EPOCH, in seconds, is the time of the build if it is set, as other
// builds that are reproducible have it.
func FindOrigin(ctx context.Context, source string) (Origin, error) {
	var o Origin
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	for _, ask := range []struct {
		into *string
		args []string
	}{
		{&o.Revision, []string{"rev-parse", "HEAD"}},
		{&o.Version, []string{"describe", "--tags", "--always", "--dirty", "--match", "v[0-9]*"}},
	} {
		text, err := runGit(ctx, source, ask.args...)
		if err != nil {
			return o, err
		}
		*ask.into = text
	}
	if epoch == "" {
		var err error
		if epoch, err = runGit(ctx, source, "log", "-1", "--format=%ct"); err != nil {
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

func runGit(ctx context.Context, folder string, args ...string) (string, error) {
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
