// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/regatta-sh/regatta/test/cluster/images"
)

// A requirement is something the machine must have, and the Debian package it
// comes in.
type requirement struct {
	pkg     string
	present func() bool
}

func requirements() []requirement {
	return []requirement{
		{"containerd", onPath("containerd")},
		{"runc", onPath("runc")},
		{"containernetworking-plugins", func() bool { _, err := pluginDir(); return err == nil }},
		{"nftables", onPath("nft")},
		{"iproute2", onPath("ip")},
		{"busybox-static", func() bool { _, err := images.FindBusyBox(); return err == nil }},
	}
}

func onPath(program string) func() bool {
	return func() bool { _, err := exec.LookPath(program); return err == nil }
}

// pluginDir is where the machine keeps its CNI plugins.
func pluginDir() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if _, err := os.Stat(dir + "/bridge"); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no CNI plugins on this machine")
}

// Install installs the packages that real nodes need and the machine lacks.
func Install(ctx context.Context, out io.Writer) error {
	missing := missingPackages(requirements())
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("real nodes need what Debian has in the packages %s; install them, there is no apt-get to do so", strings.Join(missing, ", "))
	}
	fmt.Fprintf(out, "installing %s\n", strings.Join(missing, ", "))
	if err := apt(ctx, append([]string{"install"}, missing...)...); err != nil {
		// The usual reason is a list of packages that is too old, or not there.
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		if err := apt(ctx, append([]string{"install"}, missing...)...); err != nil {
			return err
		}
	}
	if missing := missingPackages(requirements()); len(missing) > 0 {
		return fmt.Errorf("still missing after their installation: %s", strings.Join(missing, ", "))
	}
	return nil
}

func missingPackages(wanted []requirement) []string {
	var missing []string
	for _, one := range wanted {
		if !one.present() {
			missing = append(missing, one.pkg)
		}
	}
	return missing
}

func apt(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-y", "--no-install-recommends"}, args...)...)
	// RUNLEVEL keeps the packages' scripts from starting a containerd of the
	// machine's own beside those of the nodes.
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
