// SPDX-License-Identifier: Apache-2.0

package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWithoutKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c := NewCluster()
	if _, err := c.RESTConfig(); err == nil || !strings.Contains(err.Error(), "there is no kubeconfig; name one with --kubeconfig") {
		t.Errorf("got %v", err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c = NewCluster()
	c.AddFlags(flags)
	if err := flags.Parse([]string{"--server", "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if config, err := c.RESTConfig(); err != nil || config.Host != "http://127.0.0.1:1" {
		t.Errorf("a server that is named is not found: %v", err)
	}
}

func TestParse(t *testing.T) {
	both := KnownKinds()
	tests := []struct {
		name    string
		args    string
		allowed []schema.GroupKind
		want    string
		err     string
	}{
		{"a pod", "pod/web-1", both, "Pod web-1", ""},
		{"the plural", "pods/web-1", both, "Pod web-1", ""},
		{"the short name", "po/web-1", both, "Pod web-1", ""},
		{"the kind", "Pod/web-1", both, "Pod web-1", ""},
		{"two words", "pod web-1", both, "Pod web-1", ""},
		{"a CloneSet by its short name", "clone/web", both, "CloneSet.apps.kruise.io web", ""},
		{"a CloneSet", "cloneset/web", both, "CloneSet.apps.kruise.io web", ""},
		{"a CloneSet with its group", "clonesets.apps.kruise.io/web", both, "CloneSet.apps.kruise.io web", ""},
		{"a CloneSet with version and group", "clonesets.v1beta1.apps.kruise.io web", both, "CloneSet.apps.kruise.io web", ""},
		{"nothing", "", both, "", "tell what it is about: pod/NAME or clone/NAME"},
		{"a name without a kind", "web", both, "", `"web" is not enough; want pod/NAME or clone/NAME`},
		{"a kind without a name", "pod/", both, "", "no name"},
		{"a name without its kind", "/web", both, "", "want pod/NAME"},
		{"both forms at once", "pod pod/web", both, "", "no name"},
		{"two objects", "pod a b", both, "", "one object at a time"},
		{"something else", "deployment/web", both, "", "nothing is decided about a deployment"},
		{"a pod where only a CloneSet will do", "pod/web", WorkloadKinds(), "", "it cannot be a Pod here; want clone/NAME"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseArgs(strings.Fields(tc.args), tc.allowed...)
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("got %v, want %q", err, tc.err)
			}
			if err == nil && got.GroupKind().String()+" "+got.Name != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheClusterIsThatOfKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "k", "cluster": {"server": "https://example.com"}}],
		"contexts": [{"name": "c", "context": {"cluster": "k", "namespace": "shop"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, args, want string }{
		{"with the namespace of the context", "", "shop"},
		{"with the namespace of the flag", "-n other", "other"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCluster()
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			c.AddFlags(fs)
			if err := fs.Parse(append(strings.Fields(tc.args), "--kubeconfig", file)); err != nil {
				t.Fatal(err)
			}
			config, err := c.RESTConfig()
			if err != nil || config.Host != "https://example.com" {
				t.Errorf("got %v, %v", config, err)
			}
			if got, err := c.ResolveNamespace(Target{Kind: Pod, Name: "web-1"}); err != nil || got.String() != "Pod "+tc.want+"/web-1" {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
