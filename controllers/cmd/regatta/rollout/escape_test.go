// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/lipgloss"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/explain"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// hostile is a text that a user may write into an object, and harmless is how it is printed.
const (
	hostile  = "\x1b]0;owned\x07\x1b[2J\nREVISION"
	harmless = `\x1b]0;owned\x07\x1b[2J REVISION`
)

// checkHarmless fails unless a text has the hostile one harmless, some lines and no other control characters.
func checkHarmless(t *testing.T, text string, lines int) {
	t.Helper()
	control := strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) })
	if control || strings.Count(text, "\n") != lines || !strings.Contains(text, harmless) {
		t.Errorf("it is printed as %q", text)
	}
}

func TestTheTextOfRevisionsIsEscaped(t *testing.T) {
	live := withFields(t, "clone", "{status: {}}")
	live.SetUID("u")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: hostile, FieldsV1: metav1.NewFieldsV1(`{"f:spec": {"f:template": {}}}`)}})
	r := recordedAs(t, "clone", "{metadata: {name: web-1}, revision: 1, data: {spec: {template: {spec: {containers: [{name: a}]}}}}}")
	h := &workloadHistory{kind: kindOf(t, "clone"), object: live, all: []*recordedRevision{r}}
	checkHarmless(t, h.describeTable(time.Now()), 3)
	live.SetManagedFields(nil)
	r.cause = hostile
	checkHarmless(t, h.describeTable(time.Now()), 2)
	r.cause, r.name = "", strings.ReplaceAll(hostile, "\n", " ")
	checkHarmless(t, h.describeTable(time.Now()), 2)
	checkHarmless(t, joinRevisions(h.all), 0)
}

func TestTheTextOfConditionsIsEscaped(t *testing.T) {
	for _, condition := range []kruise.CloneSetCondition{
		{Type: kruise.UpdateHeld, Status: corev1.ConditionTrue, Message: hostile},
		{Type: kruise.CloneSetConditionFailedScale, Status: corev1.ConditionTrue, Message: hostile},
		{Type: kruise.CloneSetConditionProgressing, Status: corev1.ConditionFalse, Reason: kruise.CloneSetProgressDeadlineExceededReason, Message: hostile},
	} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(webSet(4, 2, func(set *kruise.CloneSet) { set.Status.Conditions = []kruise.CloneSetCondition{condition} }))
		if err != nil {
			t.Fatal(err)
		}
		live := &unstructured.Unstructured{Object: fields}
		var out bytes.Buffer
		p := &statusPrinter{object: &edit.Object{Kind: kindOf(t, "clone"), Live: live}, out: &out}
		if _, err := p.printState(live); err != nil {
			checkHarmless(t, err.Error()+"\n"+out.String(), 1)
			continue
		}
		checkHarmless(t, out.String(), 1)
	}
}

func TestTheTextOfWarningsIsEscaped(t *testing.T) {
	live := withFields(t, "clone", "{spec: {updateStrategy: {rollingUpdate: {partition: 50%}}}, status: {}}")
	var out bytes.Buffer
	printWarnings(&out, &edit.Object{Kind: kindOf(t, "clone"), Live: live}, []string{strings.ReplaceAll(hostile, "\n", " ")})
	checkHarmless(t, out.String(), 1)
}

func TestTheTextOfErrorsIsEscaped(t *testing.T) {
	cmd := escapeErrors(&cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
		return errors.Join(fmt.Errorf("reading: %w", exit.RefusalError(errors.New(strings.ReplaceAll(hostile, "\n", " ")))), errInterrupted)
	}})
	cmd.SetArgs([]string{})
	err := cmd.Execute()
	if err == nil || exit.Code(err) != exit.Refused || !errors.Is(err, errInterrupted) {
		t.Fatalf("got %v", err)
	}
	checkHarmless(t, err.Error(), 1)
	for _, below := range NewCommand(nil).Commands() {
		below.SetContext(t.Context())
		var escaped escapedError
		if err := below.RunE(below, []string{"none/web"}); !errors.As(err, &escaped) {
			t.Errorf("%s: %v", below.Name(), err)
		}
	}
}

// hostileAsker has an answer with a hostile text in all fields that are printed.
type hostileAsker struct{}

func (hostileAsker) FetchExplanation(context.Context, managers.Question) (explain.Reply, []error, error) {
	return explain.Reply{Answer: explain.Answer{
		Verdict: explain.Held, Reason: hostile, Replica: hostile, Facts: []explain.Fact{{Name: "strategy.maxUnavailable", Value: hostile}},
		Groups: map[string]map[string]points.Group{"zone": {hostile: {Total: 1}}},
		Why:    []explain.ReasonCount{{Verdict: hostile, Reason: hostile, Rule: hostile, Message: hostile, Pods: 1}},
		Nodes:  []explain.Node{{Name: hostile, Pod: hostile, Verdict: explain.Moved, Reason: hostile, Rule: hostile}},
	}}, nil, nil
}

func TestTheTextThatWatchShowsIsEscaped(t *testing.T) {
	objects, core := fakes(t)
	f, err := newFeed(t.Context(), core, objects, hostileAsker{}, web())
	if err != nil {
		t.Fatal(err)
	}
	f.pollExplanation(t.Context())
	late := webSet(4, 2, exceeded)
	late.Status.Conditions[0].Message = hostile
	f.last = late
	s, err := f.takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.silence = errors.New(hostile)
	involved := corev1.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}
	s.events = eventsOf([]*corev1.Event{{InvolvedObject: involved, Type: corev1.EventTypeWarning, Reason: hostile, Message: hostile}}, "apps.kruise.io")
	s.revisions = revisionsOf([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"controller-revision-hash": hostile}, OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}},
	}}}, "u", "")
	_, _, err = (&rollout{about: web(), now: time.Now, source: func() (snapshot, error) { return s, nil }}).nextSnapshot()
	if err == nil {
		t.Fatal("the deadline is no error")
	}
	checkHarmless(t, err.Error(), 0)
	s.state.Deadline = ""
	view := newStyles(lipgloss.NewRenderer(io.Discard)).renderView(seen{snapshot: s, at: time.Now()}, 1000, 0)
	checkHarmless(t, view, strings.Count(view, "\n"))
	for _, line := range strings.Split(view, "\n") {
		if strings.HasPrefix(line, "REVISION") {
			t.Errorf("a text has its own line:\n%s", view)
		}
	}
	for _, line := range (&lines{told: map[string]bool{}}).nextLines(s, false) {
		if strings.Contains(line, "REVISION") {
			checkHarmless(t, line, 0)
		}
	}
}
