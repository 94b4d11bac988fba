// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

func TestTheNamesAreThoseOfOPA(t *testing.T) {
	r := decision.Record{
		ID: 7, Time: time.Unix(1, 5), Point: "rollout/plan", Subject: enginetest.WebSubject(), Outcome: decision.Decided, Revision: "r",
		Bundles: []string{"freeze@1", "shop/own@2"}, Rules: []string{"rollout.plan"}, Input: enginetest.PlanFacts(1), Output: rollout.PlanOutput{Limit: 1}, Duration: 3,
	}
	e := record.NewEncoder(record.WithOrigin("me"), record.WithLabels(map[string]string{"replica": "manager-x"}))
	text, err := e.AppendLine(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	// These are what the documentation of OPA says of an event, and its types.
	var event struct {
		Labels     map[string]string `json:"labels"`
		DecisionID string            `json:"decision_id"`
		Bundles    map[string]struct {
			Revision string `json:"revision"`
		} `json:"bundles"`
		Path      string         `json:"path"`
		Input     any            `json:"input"`
		Result    any            `json:"result"`
		Timestamp time.Time      `json:"timestamp"`
		Metrics   map[string]any `json:"metrics"`
		Revision  string         `json:"revision"`
		Subject   any            `json:"subject"`
		Outcome   string         `json:"outcome"`
		Rules     []string       `json:"rules"`
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&event); err != nil {
		t.Fatal(err)
	}
	if event.DecisionID != "me-7" || event.Labels["replica"] != "manager-x" || event.Path != "rollout/plan" || !event.Timestamp.Equal(r.Time) ||
		event.Bundles["freeze"].Revision != "1" || event.Bundles["shop/own"].Revision != "2" || event.Revision != "r" ||
		event.Input == nil || event.Result == nil || event.Metrics["timer_sdk_decision_eval_ns"] != 3.0 {
		t.Errorf("it says %+v", event)
	}
	if !bytes.HasSuffix(text, []byte("}\n")) || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("it is no line: %q", text)
	}
	for _, want := range []string{`"timestamp":"1970-01-01T00:00:01.000000005Z"`, `"subject":{"kind":"CloneSet"`, `"outcome":"Decided"`, `"rules":["rollout.plan"]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in %s", want, text)
		}
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		var records []decision.Record
		for range rapid.IntRange(0, 3).Draw(t, "records") {
			r := decision.Record{
				ID: rapid.Uint64().Draw(t, "id"), Origin: rapid.SampledFrom([]string{"", "a", "a-1", "pod-b"}).Draw(t, "origin"),
				Time:    time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
				Subject: decision.Subject{Kind: "CloneSet", Name: rapid.String().Draw(t, "name")}, Revision: word.Draw(t, "revision"),
				Outcome: rapid.SampledFrom([]decision.Outcome{decision.Decided, decision.Undefined, decision.Failed, decision.TimedOut}).Draw(t, "outcome"),
				Bundles: rapid.SampledFrom([][]string{nil, {"a@1"}, {"a@1", "b/a@2"}}).Draw(t, "bundles"),
				Rules:   rapid.SliceOfN(word, 1, 2).Draw(t, "rules"), Duration: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "duration")),
				Masked: rapid.SampledFrom([][]string{nil, {"/input/x"}}).Draw(t, "masked"),
			}
			if r.ID == 0 {
				r.ID = 1
			}
			if r.Outcome != decision.Decided {
				r.Error = word.Draw(t, "error")
			}
			p := rapid.SampledFrom(catalog.All()).Draw(t, "point")
			r.Point, r.Input, r.Output = p.Name, reflect.Zero(p.In).Interface(), reflect.Zero(p.Out).Interface()
			if p.Name == "rollout/plan" {
				r.Input = rollout.PlanInput{Update: rapid.Int().Draw(t, "update"), Workload: rollout.Workload{Labels: map[string]string{"a<&": "\u2028"}}}
				r.Output = rollout.PlanOutput{Limit: 1, Holds: []decision.Hold{{Reason: "Full", Where: map[string]string{"zone": "a"}}}}
			}
			records = append(records, r)
		}
		var first, second bytes.Buffer
		if err := record.Write(&first, records); err != nil {
			t.Fatal(err)
		}
		text := first.String()
		got, err := record.Read(&first)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(records) || len(got) > 0 && !reflect.DeepEqual(got, records) {
			t.Fatalf("got  %+v\nwant %+v", got, records)
		}
		if err := record.Write(&second, got); err != nil || second.String() != text {
			t.Fatalf("written again, %v, it is %s, not %s", err, second.String(), text)
		}
	})
}

// Records of before there was a group have none, and nothing else changes.
func TestReadTakesASubjectWithAndWithoutItsGroup(t *testing.T) {
	const line = `{"decision_id":"me-1","timestamp":"2026-01-04T22:10:00Z","path":"rollout/plan","subject":{%s"kind":"CloneSet","namespace":"shop","name":"web"},"outcome":"Decided","revision":"r","input":{},"result":{}}` + "\n"
	for field, group := range map[string]string{"": "", `"group":"apps.kruise.io",`: "apps.kruise.io"} {
		records, err := record.Read(strings.NewReader(fmt.Sprintf(line, field)))
		if err != nil {
			t.Fatal(err)
		}
		want := decision.Subject{Group: group, Kind: "CloneSet", Namespace: "shop", Name: "web"}
		if len(records) != 1 || records[0].Subject != want {
			t.Fatalf("got %+v, want %+v", records, want)
		}
		text, err := record.NewEncoder(record.WithOrigin("me")).AppendLine(nil, records[0])
		if err != nil {
			t.Fatal(err)
		}
		if has := bytes.Contains(text, []byte(`"group"`)); has != (group != "") {
			t.Errorf("it is written as %s", text)
		}
	}
}

func TestReadTakesWhatOthersWrite(t *testing.T) {
	lines := `{"decision_id": "4ca636c1-55e4-417a-b1d8-4aceb67960d1", "labels": {"id": "x"}, "path": "rollout/plan", "input": {"update": 2, "new": {"a": 1}},
 "result": {"limit": 1}, "timestamp": "2026-01-01T00:00:00.000000001Z", "metrics": {"timer_x_ns": "odd"}, "req_id": 4, "nd_builtin_cache": {}, "erased": ["/input/b"], "masked": ["/input/a"]}`
	lines = strings.ReplaceAll(lines, "\n", "") + "\r\n\n" +
		`{"decision_id": "9", "path": "/rollout/plan", "error": {"code": "eval_cancel_error", "message": "late", "location": {}}}` + "\n" +
		`{"decision_id": "007", "path": "rollout/plan", "error": "late"}` + "\n" + `{"path": "http/example/authz/allow", "result": true}` + "\n"
	got, err := record.Read(strings.NewReader(lines))
	if err != nil || len(got) != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if r := got[0]; r.Origin != "4ca636c1-55e4-417a-b1d8-4aceb67960d1" || r.ID != 0 || r.Outcome != decision.Decided ||
		r.Input.(rollout.PlanInput).Update != 2 || r.Output.(rollout.PlanOutput).Limit != 1 || len(r.Masked) != 2 {
		t.Errorf("got %+v", r)
	}
	if r := got[1]; r.ID != 9 || r.Origin != "" || r.Error != "late" || r.Outcome != decision.Failed || r.Point != "rollout/plan" {
		t.Errorf("got %+v", r)
	}
	if r := got[2]; r.ID != 0 || r.Origin != "007" || r.Error != "late" {
		t.Errorf("got %+v", r)
	}
}

func TestWhatIsNoRecord(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a text":                        {"hello", "reading line 1: invalid character 'h'"},
		"a record that is cut off":      {"{}\n"[:1] + "\n", "reading line 1: unexpected end of JSON input"},
		"a line of something else":      {"{}", "reading line 1: it has no path"},
		"a list of records":             {`[{"path": "rollout/plan"}]`, "reading line 1: it is a list, and each record has a line of its own"},
		"what is compressed":            {"\x1f\x8b\x08\x00", "reading line 1: it is compressed"},
		"an id that is a number":        {`{"path": "rollout/plan", "decision_id": 7}`, "reading line 1: decision_id is a number, and must be a string"},
		"an input of another type":      {"\uFEFF" + `{"path": "x"}` + "\n" + `{"path": "rollout/plan", "input": {"update": "3"}}`, "reading line 2: the input: update is a string, and must be an integer"},
		"a result that is of no object": {`{"path": "rollout/plan", "result": true}`, "reading line 1: the result: it is true or false, and must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.Read(strings.NewReader(tc.text))
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestNoTwoProcessesHaveOneName(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		if o := record.NewOrigin(); seen[o] || strings.Contains(o, "-") {
			t.Fatalf("%q", o)
		} else {
			seen[o] = true
		}
	}
}

func TestMaskedLinesSaySo(t *testing.T) {
	m, err := mask.New("/input/workload/labels/team")
	if err != nil {
		t.Fatal(err)
	}
	question := enginetest.PlanFacts(1)
	question.Workload.Annotations = map[string]string{"db-password": "hunter2", "app": "web"}
	question.Workload.Labels["team"] = "a"
	r := decision.Record{
		ID: 1, Point: "rollout/plan", Outcome: decision.Failed, Input: question, Error: "cannot read hunter2",
		Output: rollout.PlanOutput{Holds: []decision.Hold{{Reason: "R", Message: "It is hunter2."}}},
	}
	text, err := record.NewEncoder(record.WithMask(m)).AppendLine(nil, r)
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("%s, %v", text, err)
	}
	if question.Workload.Annotations["db-password"] != "hunter2" || r.Input.(rollout.PlanInput).Workload.Annotations["db-password"] != "hunter2" {
		t.Error("the record was changed")
	}
	got, err := record.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/error/message", "/input/workload/annotations/db-password", "/input/workload/labels/team", "/result/holds/0/message"}
	read := got[0].Input.(rollout.PlanInput)
	if !reflect.DeepEqual(got[0].Masked, want) || read.Workload.Annotations["db-password"] != mask.Text || read.Workload.Annotations["app"] != "web" || read.Update != 1 {
		t.Errorf("read %+v", got[0])
	}
	var unmasked bytes.Buffer
	if err := record.Write(&unmasked, []decision.Record{r}); err != nil || !strings.Contains(unmasked.String(), "hunter2") {
		t.Errorf("what stays on this machine is masked: %s, %v", unmasked.String(), err)
	}
}
