// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	tests := []struct {
		name, output, pinned string
		want                 bool
	}{
		{"the same version fits", "Kubernetes v1.36.3", "v1.36.3", true},
		{"another patch release fits", "Kubernetes v1.36.0", "v1.36.3", true},
		{"another minor release does not", "Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", "v1.36.3", false},
		{"another major release does not", "v2.36.3", "v1.36.3", false},
		{"a version without the v fits", "etcd Version: 3.7.3\nGit SHA: abc", "v3.7.3", true},
		{"a version without a patch number fits", "v3.22+gabcdef", "v3.22.0", true},
		{"a minor version is compared as a whole", "v1.3.6", "v1.36.3", false},
		{"no version does not fit", "command not found", "v1.36.3", false},
		{"nothing does not fit", "", "v1.36.3", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := fits(test.output, test.pinned); got != test.want {
				t.Errorf("fits(%q, %q) = %v, want %v", test.output, test.pinned, got, test.want)
			}
		})
	}
}

func TestPinsAgreeWithTheModules(t *testing.T) {
	modules := map[string]string{
		"kubernetes": "k8s.io/kubernetes", "etcd": "go.etcd.io/etcd/server/v3", "kwok": "sigs.k8s.io/kwok",
		"helm": "helm.sh/helm/v3", "opa": "github.com/open-policy-agent/opa",
		// One module of two programs.
		"csi-provisioner": "github.com/kubernetes-csi/external-provisioner/v6", "csi-resizer": "github.com/kubernetes-csi/external-resizer/v2",
	}
	all := Programs()
	for minor, version := range otherKubernetes() {
		if err := CheckKubernetes(minor); err != nil {
			t.Error(err)
		}
		of, err := Select(OfKubernetes(minor, "kube-apiserver", "kubelet")...)
		if err != nil || len(of) != 2 || of[0].Version != version {
			t.Fatalf("of Kubernetes %s there is %v, %v", minor, of, err)
		}
		all = append(all, of...)
	}
	for _, program := range all {
		data, err := os.ReadFile("../" + program.Module + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		required := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(cmp.Or(modules[program.Name], modules[strings.Split(program.Module, "/")[0]])) + ` (\S+)`).FindSubmatch(data)
		if required == nil {
			t.Errorf("%s/go.mod does not require %s", program.Module, modules[program.Module])
		} else if string(required[1]) != program.Version {
			t.Errorf("%s is pinned to %s here and to %s in its go.mod", program.Name, program.Version, required[1])
		}
	}
}

func TestSelect(t *testing.T) {
	chosen, err := Select("kubectl", "etcd", "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, program := range chosen {
		names = append(names, program.Name)
	}
	if got := strings.Join(names, " "); got != "kube-apiserver kubectl etcd" {
		t.Errorf("programs are built in the order %q", got)
	}
	if _, err := Select("kubectl", "kubectx"); err == nil {
		t.Error("an unknown program is not refused")
	}
	for _, minor := range []string{"1.29", "1.36.3", "v1.34", "latest"} {
		if err := CheckKubernetes(minor); err == nil || !strings.Contains(err.Error(), "1.30, 1.32, 1.34 and 1.36") {
			t.Errorf("of Kubernetes %q: %v", minor, err)
		}
		if _, err := Select(OfKubernetes(minor, "kubelet")...); err == nil {
			t.Errorf("a kubelet of %q is not refused", minor)
		}
	}
}
