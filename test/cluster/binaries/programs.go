// SPDX-License-Identifier: Apache-2.0

// Package binaries finds or builds the programs a local cluster runs.
//
// Nothing is downloaded but Go modules: each program is compiled from the
// module that publishes it, once, into a cache outside the tree.
package binaries

import (
	"cmp"
	"fmt"
	"maps"
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
	// minor is the minor version of Kubernetes that the program is of, if it is another one than that of KubernetesVersion.
	minor string
}

// otherKubernetes are the releases that a cluster runs if it is asked to, one of a minor version. A module of each pins it, in the
// folder of Kubernetes.
func otherKubernetes() map[string]string {
	return map[string]string{"1.30": "v1.30.14", "1.32": "v1.32.9", "1.34": "v1.34.4"}
}

// CheckKubernetes refuses a minor version that no module pins. The empty one is that of KubernetesVersion.
func CheckKubernetes(minor string) error {
	if minor == "" || minor == defaultMinor() || otherKubernetes()[minor] != "" {
		return nil
	}
	return fmt.Errorf("there is no Kubernetes %q here: it is one of %s", minor, strings.Join(slices.Sorted(maps.Keys(otherKubernetes())), ", ")+" and "+defaultMinor())
}

// OfKubernetes names programs in a minor version of Kubernetes, as Select and Ensure take them. The empty one is that of
// KubernetesVersion.
func OfKubernetes(minor string, names ...string) []string {
	if minor == "" || minor == defaultMinor() {
		return names
	}
	var out []string
	for _, name := range names {
		out = append(out, name+"@"+minor)
	}
	return out
}

// ResolveKubernetes is the minor version that a text names. The empty one is that of KubernetesVersion.
func ResolveKubernetes(minor string) string { return cmp.Or(minor, defaultMinor()) }

// defaultMinor is the minor version of KubernetesVersion.
func defaultMinor() string {
	major, minor := majorMinor(KubernetesVersion)
	return major + "." + minor
}

// Programs lists every program, in the order in which they are built: the
// longest first, because the others then reuse what it compiled.
func Programs() []Program {
	major, minor := majorMinor(KubernetesVersion)
	return append(kubernetesPrograms(KubernetesVersion, "kubernetes"), []Program{
		{Name: "etcd", Module: "etcd", Package: ".", Version: EtcdVersion, VersionArgs: []string{"--version"}},
		{Name: "kwok", Module: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok", Version: KwokVersion, VersionArgs: []string{"--version"}},
		{
			Name: "helm", Module: "helm", Package: "helm.sh/helm/v3/cmd/helm", Version: HelmVersion,
			VersionArgs: []string{"version", "--short"},
			// helm template checks charts against this version of Kubernetes; as
			// built it is v1.20, which Regatta's chart refuses.
			ldflags: []string{
				"-X helm.sh/helm/v3/internal/version.version=" + HelmVersion,
				"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=" + major,
				"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=" + minor,
			},
		},
		{Name: "opa", Module: "opa", Package: "github.com/open-policy-agent/opa", Version: OPAVersion, VersionArgs: []string{"version"}},
		sidecar("csi-provisioner", "github.com/kubernetes-csi/external-provisioner/v6", ProvisionerVersion),
		sidecar("csi-resizer", "github.com/kubernetes-csi/external-resizer/v2", ResizerVersion),
	}...)
}

// sidecar is a program of the Kubernetes CSI project.
func sidecar(name, path, version string) Program {
	return Program{
		Name: name, Module: "sidecars", Package: path + "/cmd/" + name, Version: version,
		VersionArgs: []string{"--version"}, ldflags: []string{"-X main.version=" + version},
	}
}

// kubernetesPrograms are the programs of a release of Kubernetes, which a module in a folder pins.
func kubernetesPrograms(version, module string) []Program {
	major, minor := majorMinor(version)
	var programs []Program
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"} {
		versionArgs := []string{"--version"}
		if name == "kubectl" {
			versionArgs = []string{"version", "--client"}
		}
		programs = append(programs, Program{
			Name: name, Module: module, Package: "k8s.io/kubernetes/cmd/" + name,
			Version: version, VersionArgs: versionArgs,
			// Without these the server calls itself v0.0.0-master+$Format:%H$,
			// which kubectl, Helm and every version check fail to parse.
			ldflags: []string{
				"-X k8s.io/component-base/version.gitVersion=" + version,
				"-X k8s.io/component-base/version.gitMajor=" + major,
				"-X k8s.io/component-base/version.gitMinor=" + minor,
				"-X k8s.io/client-go/pkg/version.gitVersion=" + version,
			},
		})
	}
	return programs
}

// Select returns the named programs in build order. A program of Kubernetes may have a minor version behind its name, such as
// kubelet@1.34.
func Select(names ...string) ([]Program, error) {
	all := Programs()
	for _, minor := range slices.Sorted(maps.Keys(otherKubernetes())) {
		for _, program := range kubernetesPrograms(otherKubernetes()[minor], "kubernetes/v"+minor) {
			program.minor = minor
			all = append(all, program)
		}
	}
	var chosen []Program
	for _, program := range all {
		if slices.Contains(names, program.selector()) {
			chosen = append(chosen, program)
		}
	}
	if len(chosen) != len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		return nil, fmt.Errorf("unknown program among %s", strings.Join(names, ", "))
	}
	return chosen, nil
}

// selector is what Select knows a program by.
func (p Program) selector() string {
	if p.minor == "" {
		return p.Name
	}
	return p.Name + "@" + p.minor
}

func (p Program) linkerFlags() string {
	// Symbols for debuggers double the size and the time to link.
	return strings.Join(append([]string{"-s", "-w"}, p.ldflags...), " ")
}
