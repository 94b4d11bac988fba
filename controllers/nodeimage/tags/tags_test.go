// SPDX-License-Identifier: Apache-2.0

package tags_test

import (
	"testing"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
)

func TestParse(t *testing.T) {
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for text, want := range map[string]tags.Image{
		"nginx":                            {Name: "nginx", Tag: "latest", Registry: "docker.io"},
		"nginx:1.28":                       {Name: "nginx", Tag: "1.28", Registry: "docker.io"},
		"docker.io/library/nginx:1.28":     {Name: "nginx", Tag: "1.28", Registry: "docker.io"},
		"registry.example.com:5000/a/b":    {Name: "registry.example.com:5000/a/b", Tag: "latest", Registry: "registry.example.com:5000"},
		"nginx@" + digest:                  {Name: "nginx", Tag: digest, Registry: "docker.io"},
		"registry.example.com/a@" + digest: {Name: "registry.example.com/a", Tag: digest, Registry: "registry.example.com"},
	} {
		if got, err := tags.ParseImage(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Nginx", "a b", "nginx:"} {
		if got, err := tags.ParseImage(text); err == nil || got != (tags.Image{}) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

func TestPhase(t *testing.T) {
	image := tags.Image{Name: "nginx", Tag: "1.28"}
	node := &kruise.NodeImage{}
	phase := func(want kruise.ImagePullPhase, why string) {
		t.Helper()
		if got := tags.PullPhase(node, image); got != want {
			t.Errorf("%s: got %q", why, got)
		}
	}
	phase("", "not asked for")
	node.Status.ImageStatuses = map[string]kruise.ImageStatus{"nginx": {Tags: []kruise.ImageTagStatus{{Tag: "1.28", Version: 1, Phase: kruise.ImagePhaseSucceeded}}}}
	phase("", "reported, but not asked for any more")
	node.Spec.Images = map[string]kruise.ImageSpec{"nginx": {Tags: []kruise.ImageTagSpec{{Tag: "1.27", Version: 1}, {Tag: "1.28", Version: 2}}}}
	phase("", "reported of another version")
	node.Status.ImageStatuses["nginx"].Tags[0].Version = 2
	phase(kruise.ImagePhaseSucceeded, "reported")
}
