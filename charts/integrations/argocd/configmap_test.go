// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

func TestConfigMapIsNotStale(t *testing.T) {
	want, err := BuildConfigMap(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(ConfigMapFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go run ./charts/integrations/argocd/generate in the root of the repository (-want +got):\n%s", diff)
	}
}

// mostBytes is how much of the ConfigMap may be ours. Clients that apply it keep a copy in an annotation, and all annotations of an
// object have 262144 bytes at most.
const mostBytes = 230_000

// Argo CD reads the scripts from the ConfigMap as they were assembled.
func TestConfigMapHasTheScripts(t *testing.T) {
	text, err := os.ReadFile(ConfigMapFile)
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		t.Fatal(err)
	}
	if config.Name != "argocd-cm" || config.APIVersion != "v1" || config.Kind != "ConfigMap" {
		t.Errorf("it is the %s %s of %s", config.Kind, config.Name, config.APIVersion)
	}
	if json, err := yaml.YAMLToJSON(text); err != nil || len(json) > mostBytes {
		t.Errorf("it has %d bytes, %v; want %d at most", len(json), err, mostBytes)
	}
	want := map[string]string{}
	for kind, scripts := range readScripts(t) {
		id := kind.Group + "_" + kind.Kind
		want["resource.customizations.health."+id] = scripts.Health
		if scripts.Discovery == "" {
			continue
		}
		key := "resource.customizations.actions." + id
		want[key] = config.Data[key]
		var settings struct {
			Discovery   string `json:"discovery.lua"`
			Definitions []struct {
				Name   string `json:"name"`
				Script string `json:"action.lua"`
			} `json:"definitions"`
		}
		if err := yaml.UnmarshalStrict([]byte(config.Data[key]), &settings); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		got := Kind{Group: kind.Group, Name: kind.Kind, Health: scripts.Health, Discovery: settings.Discovery}
		for _, d := range settings.Definitions {
			got.Actions = append(got.Actions, Action{d.Name, d.Script})
		}
		if diff := cmp.Diff(scripts, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if diff := cmp.Diff(want, config.Data); diff != "" {
		t.Errorf("the data (-want +got):\n%s", diff)
	}
	for key := range config.Data {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			t.Errorf("%s is no key: %s", key, strings.Join(problems, "; "))
		}
	}
}

// withoutActions are the kinds that no action makes sense for, and why.
var withoutActions = map[string]string{
	"ContainerRecreateRequest": "a request is made once and ends",
	"ImageListPullJob":         "it has no field paused",
	"ImagePullJob":             "it has no field paused",
	"NodeImage":                "controllers write it",
	"NodePodProbe":             "controllers write it",
	"PersistentPodState":       "it rolls out nothing",
	"PodProbeMarker":           "it rolls out nothing",
	"PodUnavailableBudget":     "it rolls out nothing",
	"ResourceDistribution":     "it rolls out nothing",
	"WorkloadSpread":           "it rolls out nothing",
}

func TestEveryServedKindIsCovered(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "kruise", "files", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs: %v", len(files), err)
	}
	tested := map[schema.GroupVersionKind]bool{}
	for _, s := range serveAll(t) {
		tested[s.kind.WithVersion(s.version)] = true
	}
	scripts, served := readScripts(t), map[schema.GroupKind]bool{}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, &crd)
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		served[kind] = true
		if scripts[kind].Health == "" {
			t.Errorf("%s has no health check", kind)
		}
		if hasActions := scripts[kind].Discovery != ""; hasActions == (withoutActions[kind.Kind] != "") {
			t.Errorf("%s: actions %v, and the reason to have none is %q", kind, hasActions, withoutActions[kind.Kind])
		}
		for _, version := range crd.Spec.Versions {
			if version.Served && !tested[kind.WithVersion(version.Name)] {
				t.Errorf("no state of %s is of %s", kind, version.Name)
			}
		}
	}
	for kind := range scripts {
		if !served[kind] {
			t.Errorf("%s is no kind of the chart", kind)
		}
	}
}

func TestDiscoveryNamesTheActions(t *testing.T) {
	m, scripts := newMachine(t), readScripts(t)
	for _, s := range serveAll(t) {
		if scripts[s.kind].Discovery == "" {
			continue
		}
		offered, err := discoverActions(m, scripts[s.kind].Discovery, s.fields)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		var defined []string
		for _, action := range scripts[s.kind].Actions {
			defined = append(defined, action.Name)
		}
		if diff := cmp.Diff(defined, slices.Sorted(maps.Keys(offered))); diff != "" {
			t.Errorf("%s (-defined +offered):\n%s", s, diff)
		}
	}
}

func TestBrokenScriptsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no folder of a group":      {map[string]string{"prelude/a.lua": ""}, "listing the kinds of apps.kruise.io"},
		"a kind without a check":    {map[string]string{"apps.kruise.io/CloneSet/kind.lua": "local a = 1"}, "apps.kruise.io/CloneSet/health.lua"},
		"a name declared twice":     {map[string]string{"prelude/a.lua": "local a = 1\nlocal a = 2", "apps.kruise.io/CloneSet/health.lua": "return a"}, "prelude/a.lua declares a, which is declared already"},
		"a line of no declaration":  {map[string]string{"prelude/a.lua": "return 1", "apps.kruise.io/CloneSet/health.lua": "return a"}, "belongs to no declaration: return 1"},
		"declarations in a circle":  {map[string]string{"prelude/a.lua": "local a = b\nlocal b = a", "apps.kruise.io/CloneSet/health.lua": "return a"}, "assembling apps.kruise.io/CloneSet/health.lua"},
		"actions without discovery": {map[string]string{"apps.kruise.io/CloneSet/health.lua": "return 1", "apps.kruise.io/CloneSet/actions/pause/action.lua": "return 1"}, "discovery.lua"},
	} {
		source := fstest.MapFS{}
		for file, text := range tc.files {
			source[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if _, err := BuildConfigMap(source); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// A script gets the declarations that it uses, those of others behind them, and no comment.
func TestScriptsGetWhatTheyUse(t *testing.T) {
	kinds, err := ReadKinds(fstest.MapFS{
		"prelude/a.lua":                      {Data: []byte("-- comment\nlocal function unused() end\n\nlocal function first()\n  -- comment\n  return second()\nend\n\nlocal function second() return 2 end\n")},
		"apps.kruise.io/CloneSet/kind.lua":   {Data: []byte("local third = 3\n")},
		"apps.kruise.io/CloneSet/health.lua": {Data: []byte("-- comment\nreturn first() + third\n")},
		"policy.kruise.io/Other/health.lua":  {Data: []byte("return second()\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Kind{
		{Group: "apps.kruise.io", Name: "CloneSet", Health: "local function second() return 2 end\nlocal function first()\n  return second()\nend\nlocal third = 3\nreturn first() + third\n"},
		{Group: "policy.kruise.io", Name: "Other", Health: "local function second() return 2 end\nreturn second()\n"},
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
