// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/policies/spec"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestObjectsOfTheGuideAreTakenByAnAPIServer also takes the bundle.yaml of each
// example, and refuses what the guide says is refused.
func TestObjectsOfTheGuideAreTakenByAnAPIServer(t *testing.T) {
	objects := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(guide(t), -1) {
		objects[block[1]] = "README.md"
	}
	if len(objects) < 6 {
		t.Fatalf("the guide shows %d objects only", len(objects))
	}
	made, err := filepath.Glob("examples/*/bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range made {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		objects[string(text)] = path
	}
	env := apiserver.Start(t)
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	api, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	for text, from := range objects {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Errorf("%s: %v in\n%s", from, err, text)
			continue
		}
		if err := api.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// TestTheCookbookShowsWhatPeopleSee holds each recipe against what its cases say.
func TestTheCookbookShowsWhatPeopleSee(t *testing.T) {
	e := rules.Engine(t, "")
	said, own := map[string][]string{}, map[string][]string{} // own: by rules of the recipe itself
	for _, file := range caseFiles(t) {
		name := exampleOf(file)
		if name == "" {
			continue
		}
		for _, r := range cases.RunFile(t.Context(), e, nil, file) {
			for _, reason := range decision.VerdictOf(r.Record).Reasons {
				said[name] = append(said[name], reason.Message)
				if strings.HasPrefix(reason.Rule, name+".") {
					own[name] = append(own[name], reason.Message)
				}
			}
		}
	}
	_, book, _ := strings.Cut(guide(t), "## Cookbook")
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(examples/([a-z-]+)\) \| [^|]+ \| ([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(book, -1) {
		listed = append(listed, row[2])
		shown := strings.TrimSuffix(strings.TrimPrefix(row[3], `"`), `"`)
		if strings.HasPrefix(shown, "no message") {
			if len(own[row[2]]) > 0 {
				t.Errorf("%s says %q", row[2], own[row[2]])
			}
			continue
		}
		if !slices.ContainsFunc(said[row[2]], func(message string) bool { return strings.Contains(message, shown) }) {
			t.Errorf("no case of %s says %q; what they say is %q", row[2], shown, said[row[2]])
		}
	}
	slices.Sort(listed)
	var there []string
	for name := range exampleBundles(t) {
		there = append(there, name)
	}
	slices.Sort(there)
	if !slices.Equal(listed, there) {
		t.Errorf("the cookbook has %v, and there are %v", listed, there)
	}
}

// TestTheGuideListsTheConditions, in their order.
func TestTheGuideListsTheConditions(t *testing.T) {
	text, at := guide(t), 0
	for _, stage := range policy.PolicyBundleStages() {
		i := strings.Index(text, "\n| `"+stage+"` | ")
		if i < at {
			t.Errorf("there is no row of %s behind that of the stage before", stage)
		}
		at = max(at, i)
	}
}

// TestLinksOfTheGuidesLead follows those to files and to headings.
func TestLinksOfTheGuidesLead(t *testing.T) {
	guides, err := filepath.Glob("examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Glob("spec/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Concat(guides, rules, []string{"README.md", "cases/README.md", "docs/README.md"}) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(raw), "")
		for _, link := range regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), link[1])); err != nil {
				t.Errorf("%s leads to nothing: %v", path, err)
			}
			if link[1] == "" && !slices.Contains(anchors(text), link[2]) {
				t.Errorf("%s has no heading %s", path, link[2])
			}
		}
	}
}

// anchors are those that Markdown gives to headings.
func anchors(text string) (out []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		out = append(out, "#"+spec.MarkdownAnchor(heading[1]))
	}
	return out
}

// TestTheGateSaysOfAMistakeWhatTheGuideShows, as status.errors has it.
func TestTheGateSaysOfAMistakeWhatTheGuideShows(t *testing.T) {
	shown := regexp.MustCompile(`(?m)^    (incident\.rego:\d+:\d+ rego_type_error .+)$`).FindStringSubmatch(guide(t))
	if shown == nil {
		t.Fatal("the guide shows no mistake")
	}
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.FromFiles("incident", map[string]string{"incident.rego": `package extend.rollout.incident

hold contains {"reason": "IncidentOpen", "message": "An incident is open."} if {
	input.workload.anotations["shop.example/incident"]
}
`})
	if err != nil {
		t.Fatal(err)
	}
	var refused *gate.RefusedError
	if _, err := gate.New(builtin).AdmitBundle(t.Context(), b, nil, nil); !errors.As(err, &refused) {
		t.Fatalf("it is let in: %v", err)
	}
	if got := refused.Problems[0].FormatLine(); !strings.HasPrefix(got, shown[1]) {
		t.Errorf("it says %q, and the guide %q", got, shown[1])
	}
}

// TestTheTeamOfTheGuideMayHaveItsBundle lets in, as a tenant's, what the guide
// shows in full.
func TestTheTeamOfTheGuideMayHaveItsBundle(t *testing.T) {
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(guide(t), -1) {
		var object policy.PolicyBundle
		if err := yaml.Unmarshal([]byte(block[1]), &object); err != nil || object.Kind != "PolicyBundle" {
			continue
		}
		seen++
		files := map[string]string{}
		for path, text := range object.Spec.Files {
			files[path] = string(text)
		}
		b, err := bundle.FromFiles(object.Name, files, bundle.AsTenant(object.Namespace))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gate.New(builtin).AdmitBundle(t.Context(), b, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if seen == 0 {
		t.Error("the guide shows no PolicyBundle")
	}
}
