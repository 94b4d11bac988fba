// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/regatta-sh/regatta/test/install"
)

func TestTheChartSaysWhatIsInIt(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chart, metadataFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := renderMetadata(chart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s is stale; run make generate:\n%s", metadataFile, diff)
	}
	var says struct {
		Version, Icon string
		Annotations   map[string]string
	}
	if err := yaml.Unmarshal(data, &says); err != nil {
		t.Fatal(err)
	}
	encoded, isData := strings.CutPrefix(says.Icon, "data:image/svg+xml;base64,")
	if image, err := base64.StdEncoding.DecodeString(encoded); err != nil || !isData || !strings.HasPrefix(string(image), "<svg") {
		t.Errorf("the icon is %s: %v", image, err)
	}
	if candidate := strings.Contains(says.Version, "-"); (says.Annotations["artifacthub.io/prerelease"] == "true") != candidate {
		t.Errorf("that %s is no release is %s", says.Version, says.Annotations["artifacthub.io/prerelease"])
	}
	for _, name := range []string{"links", "changes", "images", "crds"} {
		var list []any
		if err := yaml.Unmarshal([]byte(says.Annotations["artifacthub.io/"+name]), &list); err != nil || len(list) == 0 {
			t.Errorf("artifacthub.io/%s is no list: %v", name, err)
		}
	}
	if rendered, err := install.Helm(t, chart, "template", "kruise", ".", "--kube-version", "1.36.0", "-s", "templates/deployment.yaml"); err != nil || !strings.Contains(rendered, "image: \""+repository+":"+says.Version+"\"") {
		t.Errorf("the chart runs another image: %v\n%s", err, rendered)
	}
}

func TestHelmLint(t *testing.T) {
	if output, err := install.Helm(t, chart, "lint", ".", "--strict", "--kube-version", "1.36.0"); err != nil || strings.Contains(output, "[INFO]") {
		t.Errorf("%v\n%s", err, output)
	}
}
