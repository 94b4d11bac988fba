// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// refreshing are templates that differ in a label, which the env of a container reads if
// containers are named.
type refreshing struct {
	*PodTemplates
	containers []string
}

func (r refreshing) CompareRevisions(string, string) (Comparison, error) {
	out := Comparison{Known: true, EnvRefresh: r.containers}
	out.Diff.Changes = []points.TemplateChange{{Class: points.ChangeMetadata, Op: "replace", Path: "/metadata/labels/tier"}}
	return out, nil
}

// Only where a container has to restart for its env does the answer depend on the node
// agents, and nothing is recreated because one is late.
func TestAnEnvIsRefreshedInPlaceWhereThereIsANodeAgent(t *testing.T) {
	e := rules.Engine(t, "")
	on := Gates{EnvFromMetadata: true, NodeAgent: true}
	broken := errors.New("broken")
	type answer struct{ action, reason string }
	inPlace, recreate := answer{points.InPlace, "InPlacePossible"}, answer{points.Recreate, "NodeAgentNeeded"}
	for name, tc := range map[string]struct {
		gates      Gates
		containers []string
		ungated    bool
		there      bool
		left       time.Duration
		err        error
		want       answer
		asked      int
	}{
		"there is one":                   {gates: on, containers: []string{"main"}, there: true, want: inPlace, asked: 1},
		"one may come back":              {gates: on, containers: []string{"main"}, left: time.Second, want: answer{points.Wait, AgentMissingReason}, asked: 1},
		"there is none":                  {gates: on, containers: []string{"main"}, want: recreate, asked: 1},
		"that is not known":              {gates: on, containers: []string{"main"}, err: broken, asked: 1},
		"no env reads the label":         {gates: on, want: inPlace},
		"the gate of the agents is off":  {gates: Gates{EnvFromMetadata: true}, containers: []string{"main"}, want: recreate},
		"the gate of the env is off":     {gates: Gates{NodeAgent: true}, containers: []string{"main"}, want: inPlace},
		"the pod has no readiness gate":  {gates: on, containers: []string{"main"}, ungated: true, there: true, want: answer{points.Recreate, "NoReadinessGate"}, asked: 1},
		"the pod has none, nor the node": {gates: on, containers: []string{"main"}, ungated: true, want: recreate, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := testRound(e, 1, 0, func(f *Facts, pods []*corev1.Pod) {
				f.Strategy.Policy = "InPlaceIfPossible"
				f.Templates = refreshing{f.Templates.(*PodTemplates), tc.containers}
				if !tc.ungated {
					pods[0].Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
				}
			})
			asked := 0
			r.c.gates = tc.gates
			r.c.agents = func(_ context.Context, node string) (bool, time.Duration, error) {
				if asked++; node != "node-a" {
					t.Errorf("asked about node %s", node)
				}
				return tc.there, tc.left, tc.err
			}
			got, err := (&changeDecisions{r: r, f: f, known: map[podChange]Change{}}).evaluatePod(t.Context(), f.Pods[0])
			if !errors.Is(err, tc.err) || (answer{got.Action, got.Reason}) != tc.want || asked != tc.asked {
				t.Errorf("got %+v, %v, asked %d times", got.ChangeOutput, err, asked)
			}
		})
	}
}

// replacing are templates that differ in an image.
type replacing struct{ *PodTemplates }

func (replacing) CompareRevisions(string, string) (Comparison, error) {
	out := Comparison{Known: true}
	out.Diff.Changes = []points.TemplateChange{{Class: points.ChangeImage, Op: "replace", Path: "/spec/containers/0/image", Container: "main"}}
	return out, nil
}

// A setting of the policies keeps pods ready that no Service selects.
func TestAPodThatNoServiceSelectsStaysReady(t *testing.T) {
	service := func(namespace, name string, selector map[string]string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Selector: selector}}
	}
	e := rules.Engine(t, "")
	const setting = `settings := {"readinessGate": "WhereServed"}`
	web := map[string]string{"app": "web"}
	for name, tc := range map[string]struct {
		rules    string
		services []client.Object
		unknown  bool
		want     bool
	}{
		"none":                       {rules: setting, want: true},
		"one selects it":             {rules: setting, services: []client.Object{service("shop", "web", web)}},
		"one has another selector":   {rules: setting, services: []client.Object{service("shop", "db", map[string]string{"app": "db"})}, want: true},
		"one has no selector":        {rules: setting, services: []client.Object{service("shop", "external", nil)}, want: true},
		"one is elsewhere":           {rules: setting, services: []client.Object{service("other", "web", web)}, want: true},
		"they are not known":         {rules: setting, unknown: true},
		"there is no setting":        {rules: "settings := {}"},
		"it is for other namespaces": {rules: setting + ` if input.workload.namespace == "batch"`},
	} {
		t.Run(name, func(t *testing.T) {
			knobs, err := bundle.FromFiles("knobs", map[string]string{"knobs.rego": "package extend.rollout.knobs\n" + tc.rules})
			if err == nil {
				err = e.ActivateBundles(t.Context(), bundle.Set{knobs})
			}
			if err != nil {
				t.Fatal(err)
			}
			r, f := testRound(e, 1, 0, func(f *Facts, pods []*corev1.Pod) {
				f.Strategy.Policy = "InPlaceIfPossible"
				f.Templates = replacing{f.Templates.(*PodTemplates)}
				pods[0].Labels["app"] = "web"
			})
			r.c.services, r.c.Client = !tc.unknown, fake.NewClientBuilder().WithObjects(tc.services...).Build()
			got, err := (&changeDecisions{r: r, f: f, known: map[podChange]Change{}}).evaluatePod(t.Context(), f.Pods[0])
			if err != nil || got.Action != points.InPlace || got.KeepReady != tc.want {
				t.Errorf("got %+v, %v", got.ChangeOutput, err)
			}
		})
	}
}
