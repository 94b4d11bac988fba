// SPDX-License-Identifier: Apache-2.0

// Package binaries finds or builds the programs a local cluster runs.
//
// Nothing is downloaded but Go modules: each program is compiled from the
// module that publishes it, once, into a cache outside the tree.
package binaries

import (
	"fmt"
	"slices"
	"strings"
)

// Versions the cluster is pinned to. They must agree with the go.mod beside
// this package; a test checks that they do.
const (
	KubernetesVersion = "v1.36.3"
	EtcdVersion       = "v3.7.3"
	KwokVersion       = "v0.8.0"
	HelmVersion       = "v3.22.0"
	OPAVersion        = "v1.22.0"
	// Of the programs beside the CSI driver.
	ProvisionerVersion = "v6.4.0"
	ResizerVersion     = "v2.3.0"
)

// A Program is one executable and where it comes from.
type Program struct {
	Name    string
	Module  string // the directory, beside this package, of the module that pins it
	Package string
	Version string
	// VersionArgs make an executable found on the machine say its version.
	VersionArgs []string
	ldflags     []string
}

// Programs lists every program, in the order in which they are built: the
// longest first, because the others then reuse what it compiled.
func Programs() []Program {
	major, minor := majorMinor(KubernetesVersion)
	return []Program{
		kubernetes("kube-apiserver", "--version"),
		kubernetes("kube-controller-manager", "--version"),
		kubernetes("kube-scheduler", "--version"),
		kubernetes("kubelet", "--version"),
		kubernetes("kube-proxy", "--version"),
		kubernetes("kubectl", "version", "--client"),
		{Name: "etcd", Module: "etcd", Package: ".", Version: EtcdVersion, VersionArgs: []string{"--version"}},
		{Name: "kwok", Module: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok", Version: KwokVersion, VersionArgs: []string{"--version"}},
		{
			Name: "helm", Module: "helm", Package: "helm.sh/helm/v3/cmd/helm", Version: HelmVersion,
			VersionArgs: []string{"version", "--short"},
			// helm template checks charts against this version of Kubernetes; as
			// built it is v1.20, which ours refuses.
			ldflags: []string{
				"-X helm.sh/helm/v3/internal/version.version=" + HelmVersion,
				"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=" + major,
				"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=" + minor,
			},
		},
		{Name: "opa", Module: "opa", Package: "github.com/open-policy-agent/opa", Version: OPAVersion, VersionArgs: []string{"version"}},
		sidecar("csi-provisioner", "github.com/kubernetes-csi/external-provisioner/v6", ProvisionerVersion),
		sidecar("csi-resizer", "github.com/kubernetes-csi/external-resizer/v2", ResizerVersion),
	}
}

// sidecar is a program of the Kubernetes CSI project.
func sidecar(name, path, version string) Program {
	return Program{
		Name: name, Module: "sidecars", Package: path + "/cmd/" + name, Version: version,
		VersionArgs: []string{"--version"}, ldflags: []string{"-X main.version=" + version},
	}
}

func kubernetes(name string, versionArgs ...string) Program {
	major, minor := majorMinor(KubernetesVersion)
	return Program{
		Name: name, Module: "kubernetes", Package: "k8s.io/kubernetes/cmd/" + name,
		Version: KubernetesVersion, VersionArgs: versionArgs,
		// Without these the server calls itself v0.0.0-master+$Format:%H$,
		// which kubectl, Helm and every version check fail to parse.
		ldflags: []string{
			"-X k8s.io/component-base/version.gitVersion=" + KubernetesVersion,
			"-X k8s.io/component-base/version.gitMajor=" + major,
			"-X k8s.io/component-base/version.gitMinor=" + minor,
			"-X k8s.io/client-go/pkg/version.gitVersion=" + KubernetesVersion,
		},
	}
}

// Select returns the named programs in build order.
func Select(names ...string) ([]Program, error) {
	var chosen []Program
	for _, program := range Programs() {
		if slices.Contains(names, program.Name) {
			chosen = append(chosen, program)
		}
	}
	if len(chosen) != len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		return nil, fmt.Errorf("unknown program among %s", strings.Join(names, ", "))
	}
	return chosen, nil
}

func (p Program) linkerFlags() string {
	// Symbols for debuggers double the size and the time to link.
	return strings.Join(append([]string{"-s", "-w"}, p.ldflags...), " ")
}
