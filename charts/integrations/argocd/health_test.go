// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	conditions "github.com/regatta-sh/regatta/controllers/workload/condition"
)

// shown is what Argo CD shows of an object.
type shown struct{ Status, Message string }

func healthy(message string) shown     { return shown{"Healthy", message} }
func progressing(message string) shown { return shown{"Progressing", message} }
func degraded(message string) shown    { return shown{"Degraded", message} }
func suspended(message string) shown   { return shown{"Suspended", message} }

const unobservedMessage = "The controller has not seen the newest change yet."

// state is a state of an object.
type state struct {
	// prose says what the state is, after the name of the kind.
	prose  string
	object client.Object
	want   shown
	// alpha is what Argo CD shows of v1alpha1, where that differs.
	alpha shown
}

func allStates() []state { return slices.Concat(workloadStates(), jobStates(), otherStates()) }

// versionsOf are the versions of a kind.
func versionsOf(scheme *runtime.Scheme, kind schema.GroupKind) (out []string) {
	for _, version := range scheme.PrioritizedVersionsForGroup(kind.Group) {
		if scheme.Recognizes(version.WithKind(kind.Kind)) {
			out = append(out, version.Version)
		}
	}
	return out
}

// served is an object of a state as a version of the API serves it.
type served struct {
	state
	version string
	fields  map[string]any
	kind    schema.GroupKind
	want    shown
	// stored is true of the version that the API server keeps.
	stored bool
}

func (s served) String() string { return fmt.Sprintf("%s %s: %s", s.kind.Kind, s.version, s.prose) }

func serveAll(t testing.TB) (out []served) {
	t.Helper()
	scheme := newScheme(t)
	for _, s := range allStates() {
		kinds, _, err := scheme.ObjectKinds(s.object)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range versionsOf(scheme, kinds[0].GroupKind()) {
			one := served{state: s, version: version, kind: kinds[0].GroupKind(), want: s.want, fields: serveObject(t, scheme, s.object, version)}
			one.stored = version == kinds[0].Version
			if version == "v1alpha1" && s.alpha.Status != "" {
				one.want = s.alpha
			}
			out = append(out, one)
		}
	}
	return out
}

// judgeObject runs a health check. It fails unless that returns a status and a message.
func judgeObject(m *luaMachine, script string, fields map[string]any) (shown, error) {
	result, err := m.runScript(script, fields)
	if err != nil {
		return shown{}, err
	}
	answer, _ := result.(map[string]any)
	status, isText := answer["status"].(string)
	message, _ := answer["message"].(string)
	if !isText || message == "" || len(answer) != 2 || !slices.Contains([]string{"Healthy", "Progressing", "Degraded", "Suspended"}, status) {
		return shown{}, fmt.Errorf("the answer is %v", result)
	}
	return shown{status, message}, nil
}

// The conditions that sum up a status for kstatus change no health: the checks look at what these are made of.
func TestConditionsOfKstatusChangeNoHealth(t *testing.T) {
	scheme, scripts, m, added := newScheme(t), readScripts(t), newMachine(t), 0
	for _, s := range serveAll(t) {
		if s.kind.Kind == "ResourceDistribution" { // it has none: its conditions that are True are failures
			continue
		}
		for _, summary := range []string{kruise.ConditionReady, kruise.ConditionReconciling, kruise.ConditionStalled} {
			object := s.object.DeepCopyObject().(client.Object)
			status := reflect.ValueOf(object).Elem().FieldByName("Status").Addr().Interface()
			isBundle := strings.HasSuffix(s.kind.Kind, "PolicyBundle") // Ready is one of its own
			if conditions.HasCondition(status, summary) || isBundle && summary == kruise.ConditionReady {
				continue
			}
			added++
			is := conditions.Condition{Type: summary, Status: metav1.ConditionTrue, Reason: "Summary", Message: "in short"}
			conditions.SetCondition(status, is, object.GetGeneration(), metav1.Unix(1_800_000_000, 0))
			got, err := judgeObject(m, scripts[s.kind].Health, serveObject(t, scheme, object, s.version))
			if err != nil || got != s.want {
				t.Errorf("%s with %s is %v, want %v: %v", s, summary, got, s.want, err)
			}
		}
	}
	if added < 100 {
		t.Errorf("%d objects were judged", added)
	}
}

func TestHealthOfEachState(t *testing.T) {
	scripts, m := readScripts(t), newMachine(t)
	for _, s := range serveAll(t) {
		got, err := judgeObject(m, scripts[s.kind].Health, s.fields)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		} else if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s, diff)
		}
	}
}
