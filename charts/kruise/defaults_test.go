// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/features"
)

// values are the defaults: each leaf by its path, as JSON.
func values(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.UnmarshalStrict(data, &tree); err != nil {
		t.Fatal(err)
	}
	leaves := map[string]string{}
	var walk func(string, map[string]any)
	walk = func(prefix string, tree map[string]any) {
		for key, value := range tree {
			if branch, ok := value.(map[string]any); ok && len(branch) > 0 {
				walk(prefix+key+".", branch)
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			leaves[prefix+key] = string(text)
		}
	}
	walk("", tree)
	return leaves
}

// The tables of OpenKruise's installation page, but for manager.image, which is
// the image and the version of this chart, and for the timeout, which is 30 seconds there:
// while the manager is down, a request waits for that long.
func TestDocumentedDefaults(t *testing.T) {
	got := values(t)
	for name, want := range map[string]string{
		"featureGates":                                `""`,
		"installation.namespace":                      `"kruise-system"`,
		"installation.createNamespace":                `true`,
		"crds.managed":                                `true`,
		"imagePullSecrets":                            `false`,
		"manager.log.level":                           `"4"`,
		"manager.replicas":                            `2`,
		"manager.image.repository":                    `""`,
		"manager.image.tag":                           `""`,
		"manager.resources.limits.cpu":                `"200m"`,
		"manager.resources.limits.memory":             `"512Mi"`,
		"manager.resources.requests.cpu":              `"100m"`,
		"manager.resources.requests.memory":           `"256Mi"`,
		"manager.metrics.port":                        `8080`,
		"manager.webhook.port":                        `9443`,
		"manager.nodeAffinity":                        `{}`,
		"manager.nodeSelector":                        `{}`,
		"manager.tolerations":                         `[]`,
		"manager.resyncPeriod":                        `"0"`,
		"manager.hostNetwork":                         `false`,
		"manager.loggingFormat":                       `""`,
		"daemon.log.level":                            `"4"`,
		"daemon.port":                                 `10221`,
		"daemon.resources.limits.cpu":                 `"50m"`,
		"daemon.resources.limits.memory":              `"128Mi"`,
		"daemon.resources.requests.cpu":               `"0"`,
		"daemon.resources.requests.memory":            `"0"`,
		"daemon.affinity":                             `{}`,
		"daemon.socketLocation":                       `"/var/run"`,
		"daemon.socketFile":                           `""`,
		"daemon.credentialProvider.enable":            `false`,
		"daemon.credentialProvider.hostPath":          `"credential-provider-plugin"`,
		"daemon.credentialProvider.configmap":         `"credential-provider-config"`,
		"daemon.credentialProvider.awsCredentialsDir": `""`,
		"enableKubeCacheMutationDetector":             `false`,
		"webhookConfiguration.failurePolicy.pods":     `"Ignore"`,
		"webhookConfiguration.timeoutSeconds":         `3`,
		"externalCerts.annotations":                   `{}`,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
}

// rows are the rows of README.md whose first cell is in code style, cell by cell.
func rows(t *testing.T) [][]string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for _, line := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(string(data), -1) {
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "| "), " | ") {
			cells = append(cells, strings.Trim(cell, "` "))
		}
		found = append(found, cells)
	}
	return found
}

func TestTheReadmeHasAllValues(t *testing.T) {
	want, got := values(t), map[string]string{}
	for name, value := range want {
		if text := strings.Trim(value, `"`); text != "" && value[0] == '"' && !regexp.MustCompile(`^[0-9]+$`).MatchString(text) {
			want[name] = text // strings that YAML reads as such need no quotes
		}
	}
	for _, row := range rows(t) {
		if _, isGate := want[row[0]]; isGate || strings.Contains(row[0], ".") {
			got[row[0]] = row[1]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheReadmeHasAllFeatureGates(t *testing.T) {
	gates, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	specs := gates.GetAll()
	for _, name := range []featuregate.Feature{"AllAlpha", "AllBeta", "EnhancedLivenessProbeGate", "ForceDeleteTimeoutExpectationFeatureGate"} {
		delete(specs, name) // not gates of their own
	}
	told := map[featuregate.Feature]bool{}
	for _, row := range rows(t) {
		name := featuregate.Feature(row[0])
		spec, ok := specs[name]
		if len(row) != 4 {
			continue
		}
		if !ok {
			t.Errorf("%s does not exist", name)
			continue
		}
		told[name] = true
		if want := map[bool]string{true: "on", false: "off"}[spec.Default]; row[1] != want {
			t.Errorf("%s is %s by default, not %s", name, want, row[1])
		}
		if want := strings.ToLower(string(spec.PreRelease)); row[2] != want {
			t.Errorf("%s is %s, not %s", name, want, row[2])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if !told[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
