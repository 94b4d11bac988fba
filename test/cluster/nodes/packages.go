// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/regatta-sh/regatta/test/cluster/images"
	"github.com/regatta-sh/regatta/test/debian"
)

// requirements are what the machine must have for real nodes.
func requirements() []debian.Requirement {
	return []debian.Requirement{
		{Package: "containerd", IsPresent: debian.OnPath("containerd")},
		{Package: "runc", IsPresent: debian.OnPath("runc")},
		{Package: "containernetworking-plugins", IsPresent: func() bool { _, err := pluginDir(); return err == nil }},
		{Package: "nftables", IsPresent: debian.OnPath("nft")},
		{Package: "iproute2", IsPresent: debian.OnPath("ip")},
		{Package: "busybox-static", IsPresent: func() bool { _, err := images.FindBusyBox(); return err == nil }},
	}
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
	return debian.Install(ctx, out, "real nodes", requirements()...)
}
