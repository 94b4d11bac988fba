// SPDX-License-Identifier: Apache-2.0

// Package debian installs Debian packages that tests need.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Requirement is something that the machine must have, and the Debian package that has it.
type Requirement struct {
	Package   string
	IsPresent func() bool
}

// OnPath returns whether a program is on the path, as a function for a Requirement.
func OnPath(program string) func() bool {
	return func() bool { _, err := exec.LookPath(program); return err == nil }
}

// Install installs the packages of the requirements that the machine lacks. It returns an error that names them if it cannot. purpose
// begins that message, such as "real nodes".
func Install(ctx context.Context, out io.Writer, purpose string, requirements ...Requirement) error {
	missing := missingPackages(requirements)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%s need what Debian has in the packages %s; install them, there is no apt-get to do so", purpose, strings.Join(missing, ", "))
	}
	fmt.Fprintf(out, "installing %s\n", strings.Join(missing, ", "))
	if err := runApt(ctx, append([]string{"install"}, missing...)...); err != nil {
		// The usual reason is a list of packages that is too old, or not there.
		if updating := runApt(ctx, "update"); updating != nil {
			return errors.Join(err, updating)
		}
		if err := runApt(ctx, append([]string{"install"}, missing...)...); err != nil {
			return err
		}
	}
	if missing := missingPackages(requirements); len(missing) > 0 {
		return fmt.Errorf("still missing after their installation: %s", strings.Join(missing, ", "))
	}
	return nil
}

func missingPackages(wanted []Requirement) []string {
	var missing []string
	for _, one := range wanted {
		if !one.IsPresent() {
			missing = append(missing, one.Package)
		}
	}
	return missing
}

func runApt(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	// RUNLEVEL keeps the packages' scripts from starting a containerd of the machine's own beside those of the nodes.
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
