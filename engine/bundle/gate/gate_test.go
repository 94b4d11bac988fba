// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
)

// TestMain lets this test binary be the child that it starts.
func TestMain(m *testing.M) {
	if gate.IsChild() {
		os.Exit(gate.ServeChild(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const builtin = `package rollout

default plan := {"limit": 0, "maxUnavailable": 0, "holds": [], "scatter": []}

plan := {"limit": input.update, "maxUnavailable": input.maxUnavailable, "holds": [h | some h in holds], "scatter": []}

holds contains h if {
	some name
	some h in data.extend.rollout[name].hold
}

doubled(x) := x * 2
`

func builtinBundle(t testing.TB) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles("builtin", map[string]string{"rollout/plan.rego": builtin}, bundle.AsBuiltin())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func user(t testing.TB, name string, files map[string]string, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles(name, files, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const hold = "package extend.rollout.a\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if "

func runners() map[string]gate.Runner {
	return map[string]gate.Runner{"in this process": gate.InProcess{}, "in a child": gate.Child{}}
}

func TestAdmit(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant bool
		files  map[string]string
		active map[string]string
		stage  gate.Stage
		want   []string
	}{
		"a hold":                                       {files: map[string]string{"a.rego": hold + "input.update > 5"}},
		"a hold that a test covers":                    {files: map[string]string{"a.rego": hold + "input.update > 5", "a_test.rego": "package extend.rollout.a_test\ntest_it if count(data.extend.rollout.a.hold) == 1 with input as {\"update\": 6}"}},
		"a test that asks the whole decision":          {files: map[string]string{"a.rego": hold + "input.update > 5", "a_test.rego": "package extend.rollout.a_test\ntest_it if count(data.rollout.plan.holds) == 1 with input as {\"update\": 6, \"maxUnavailable\": 1}"}},
		"a fact that only another point has":           {files: map[string]string{"a.rego": hold + "input.pods[_].labels.tier == \"gold\""}},
		"a fact that two points have":                  {files: map[string]string{"a.rego": hold + "input.workload.annotations[\"x/y\"] == \"z\""}},
		"a function of the built-in policies":          {files: map[string]string{"a.rego": hold + "data.rollout.doubled(input.update) > 5"}},
		"a decision that is replaced":                  {files: map[string]string{"a.rego": "package override.rollout\nplan := {\"limit\": 1, \"maxUnavailable\": 1, \"holds\": {{\"reason\": \"a\", \"message\": \"b\"}}, \"scatter\": []}"}},
		"a rank":                                       {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {p.name: 1 | some p in input.pods}"}},
		"a hold with a part that is not known":         {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains h if { some h in object.get(input, \"x\", []) }"}},
		"its own place":                                {files: map[string]string{"a.rego": hold + "true"}, active: map[string]string{"own": hold + "false"}},
		"data beside it":                               {files: map[string]string{"a.rego": hold + "data.extend.rollout.a.limits.most > input.update", "extend/rollout/a/data.yaml": "limits: {most: 3}", "a_test.rego": "package extend.rollout.a_test\ntest_it if data.extend.rollout.a.limits.most == 3"}},
		"a package it may not have":                    {files: map[string]string{"a.rego": "package rollout\nx := 1"}, stage: gate.Packages, want: []string{"a.rego:1:1: package rollout is not one"}},
		"a tenant's verb":                              {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nsettings := {}"}, stage: gate.Packages, want: []string{"a.rego:2:1: settings"}},
		"a package that is taken":                      {files: map[string]string{"a.rego": hold + "true"}, active: map[string]string{"other": hold + "true"}, stage: gate.Compile, want: []string{"a.rego:1:1: package extend.rollout.a of bundle own belongs to bundle other already"}},
		"an unknown function":                          {files: map[string]string{"a.rego": hold + "nope(1)"}, stage: gate.Compile, want: []string{"a.rego:3:50: rego_type_error: undefined function nope"}},
		"a clock":                                      {files: map[string]string{"a.rego": hold + "time.now_ns() > 1"}, stage: gate.Compile, want: []string{"a.rego:3:50: rego_type_error: undefined function time.now_ns"}},
		"the network":                                  {files: map[string]string{"a.rego": hold + "http.send({}).status == 1"}, stage: gate.Compile, want: []string{"undefined function http.send"}},
		"a variable that is not used":                  {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if { x := 1 }"}, stage: gate.Compile, want: []string{"a.rego:2:23: "}},
		"a misspelt fact":                              {files: map[string]string{"a.rego": hold + "input.strategy.maxUnavaliable > 1"}, stage: gate.Schemas, want: []string{"a.rego:3:50: rego_type_error: undefined ref: input.strategy.maxUnavaliable"}},
		"a misspelt fact of a pod":                     {files: map[string]string{"a.rego": hold + "input.pods[_].lables.tier == \"gold\""}, stage: gate.Schemas, want: []string{"a.rego:3:50: rego_type_error: undefined ref: input.pods[_].lables"}},
		"a number compared with text":                  {files: map[string]string{"a.rego": hold + "startswith(input.update, \"a\")"}, stage: gate.Schemas, want: []string{"a.rego:3:50: rego_type_error: startswith: invalid argument"}},
		"a misspelt fact where a decision is replaced": {files: map[string]string{"a.rego": "package override.rollout\nplan := {\"limit\": input.updates, \"maxUnavailable\": 1, \"holds\": [], \"scatter\": []}"}, stage: gate.Schemas, want: []string{"a.rego:2:19: rego_type_error: undefined ref: input.updates"}},
		"an answer that is a number":                   {files: map[string]string{"a.rego": "package override.rollout\nplan := 1"}, stage: gate.Types, want: []string{"a.rego:2:1: data.override.rollout.plan cannot be the answer: it is a number, want an object"}},
		"an answer with a part missing":                {files: map[string]string{"a.rego": "package override.rollout\nplan := {\"limit\": 1, \"holds\": [], \"scatter\": []}"}, stage: gate.Types, want: []string{"a.rego:2:1: data.override.rollout.plan cannot be the answer: the field maxUnavailable is missing"}},
		"an answer with a part too many":               {files: map[string]string{"a.rego": "package override.rollout\nplan := {\"limit\": 1, \"maxUnavailable\": 1, \"hold\": [], \"holds\": [], \"scatter\": []}"}, stage: gate.Types, want: []string{"there is no field hold; there are holds, limit, maxUnavailable, scatter"}},
		"an answer with a part of another type":        {files: map[string]string{"a.rego": "package override.rollout\nplan := {\"limit\": \"1\", \"maxUnavailable\": 1, \"holds\": [], \"scatter\": []}"}, stage: gate.Types, want: []string{"limit: it is a string, want a number"}},
		"a hold without a message":                     {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {\"reason\": \"R\"} if true"}, stage: gate.Types, want: []string{"a.rego:2:1: data.extend.rollout.a.hold cannot be the answer: the field message is missing"}},
		"a hold that is text":                          {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains \"stop\" if true"}, stage: gate.Types, want: []string{"it is a string, want an object"}},
		"a rank that is a list":                        {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := [p.name | some p in input.pods]"}, stage: gate.Types, want: []string{"a.rego:2:1: data.extend.rollout.a.rank cannot be the answer: it is an array, want an object"}},
		"a test that fails":                            {files: map[string]string{"a.rego": hold + "true", "a_test.rego": "package extend.rollout.a_test\n\ntest_it if 1 == 2\n\ntest_other if true"}, stage: gate.Tests, want: []string{"a_test.rego:3:1: extend.rollout.a_test.test_it failed"}},
		"a test that says why":                         {files: map[string]string{"a.rego": hold + "true", "a_test.rego": "package extend.rollout.a_test\ntest_it if { print(\"hello\"); 1 == 2 }"}, stage: gate.Tests, want: []string{"it printed hello"}},
		"a test that does not compile":                 {files: map[string]string{"a.rego": hold + "true", "a_test.rego": "package extend.rollout.a_test\ntest_it if nope(1)"}, stage: gate.Tests, want: []string{"a_test.rego:2:12: rego_type_error: undefined function nope"}},
		"a test with an error of a built-in":           {files: map[string]string{"a.rego": hold + "true", "a_test.rego": "package extend.rollout.a_test\ntest_it if not to_number(\"x\") == 1"}, stage: gate.Tests, want: []string{"a_test.rego:2:1: extend.rollout.a_test.test_it"}},
	} {
		for how, runner := range runners() {
			if how == "in a child" && tc.stage != "" && tc.stage != gate.Tests {
				continue // the same code; starting it costs
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				var opts []bundle.Option
				if tc.tenant {
					opts = append(opts, bundle.AsTenant("shop"))
				}
				var active bundle.Set
				for n, source := range tc.active {
					active = append(active, user(t, n, map[string]string{"a.rego": source}))
				}
				g := gate.New(builtinBundle(t), gate.WithRunner(runner))
				report, err := g.AdmitBundle(context.Background(), user(t, "own", tc.files, opts...), active, nil)
				if tc.stage == "" {
					if err != nil {
						t.Error(err)
					}
					if len(tc.files) > 1 && len(report.Tests) == 0 {
						t.Error("no test was run")
					}
					return
				}
				var refused *gate.RefusedError
				if !errors.As(err, &refused) {
					t.Fatalf("admitted: %v, want a refusal in stage %s", err, tc.stage)
				}
				if refused.Stage != tc.stage || len(refused.Problems) != len(tc.want) {
					t.Fatalf("got %v\nwant %s %q", err, tc.stage, tc.want)
				}
				for i, want := range tc.want {
					if !strings.Contains(refused.Problems[i].String(), want) {
						t.Errorf("got  %s\nwant %s", refused.Problems[i], want)
					}
					if refused.Problems[i].Code == "" {
						t.Errorf("%s has no code", refused.Problems[i])
					}
				}
			})
		}
	}
}

// Files are refused for what is wrong with them alone, and nothing of them is run.
func TestCheckFilesRunsNoTests(t *testing.T) {
	failing := "package extend.rollout.a_test\ntest_it if false"
	for name, tc := range map[string]struct {
		source string
		stage  gate.Stage
	}{
		"a hold":           {hold + "input.update > 5", ""},
		"an unknown fact":  {hold + "input.updaet > 5", gate.Schemas},
		"another package":  {"package rollout\nx := 1", gate.Packages},
		"a wrong answer":   {"package extend.rollout.a\nhold contains 1 if true", gate.Types},
		"a wrong function": {hold + "nope(1)", gate.Compile},
	} {
		for how, runner := range runners() {
			t.Run(name+"/"+how, func(t *testing.T) {
				own := user(t, "own", map[string]string{"a.rego": tc.source, "a_test.rego": failing})
				report, err := gate.New(builtinBundle(t), gate.WithRunner(runner)).CheckFiles(t.Context(), own)
				var refused *gate.RefusedError
				if errors.As(err, &refused); refused == nil && (tc.stage != "" || err != nil) || refused != nil && refused.Stage != tc.stage {
					t.Errorf("got %v, want a refusal in stage %q", err, tc.stage)
				}
				if last := report.Stages[len(report.Stages)-1].Stage; len(report.Tests) > 0 || tc.stage == "" && last != gate.Types {
					t.Errorf("the last stage is %s, and %d tests were run", last, len(report.Tests))
				}
			})
		}
	}
}

func TestACanaryIsCheckedWhereItHolds(t *testing.T) {
	e, err := engine.FromBundle(builtinBundle(t), engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var records []decision.Record
	for _, ns := range []string{"shop", "bank"} {
		_, r := engine.Decide(t.Context(), e, points.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: ns, Name: "web"}, points.PlanInput{Update: 1})
		records = append(records, r)
	}
	stable := user(t, "own", map[string]string{"a.rego": hold + "false"})
	canary := user(t, "own", map[string]string{"a.rego": hold + "input.update == 1"}, bundle.AsCanary("shop"))
	for how, runner := range runners() {
		t.Run(how, func(t *testing.T) {
			report, err := gate.New(builtinBundle(t), gate.WithRunner(runner)).AdmitBundle(t.Context(), canary, bundle.Set{stable}, records)
			if err != nil || report.Replayed != 2 || len(report.Differences) != 1 || report.Differences[0].Subject.Namespace != "shop" {
				t.Errorf("got %+v, %v; want another answer in shop alone", report, err)
			}
			taken := user(t, "other", canary.Files, bundle.AsCanary("bank"))
			if _, err := gate.New(builtinBundle(t), gate.WithRunner(runner)).AdmitBundle(t.Context(), taken, bundle.Set{stable, canary}, nil); err == nil || !strings.Contains(err.Error(), "package extend.rollout.a of bundle other belongs to bundle own already") {
				t.Errorf("got %v, want a conflict with the one that holds in bank", err)
			}
		})
	}
}

// giants has types of 2^30 parts, which OPA's type checker compares one by one.
func giants() string {
	var out strings.Builder
	for _, name := range []string{"x", "y"} {
		fmt.Fprintf(&out, "%s0 := [1]\n", name)
		for i := range 30 {
			fmt.Fprintf(&out, "%s%d := [%s%d, %s%d]\n", name, i+1, name, i, name, i)
		}
	}
	return out.String() + "test_it if x30 == y30\n"
}

func TestHostileTestsCostTheirLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		test string
		time time.Duration
	}{
		"time, while it is compiled": {giants(), 2 * time.Second},
		"time":                       {"test_it if {\n r := numbers.range(1, 100000)\n some a in r; some b in r; some c in r\n a + b + c == 0\n}", 2 * time.Second},
		"memory":                     {"test_it if count(numbers.range(1, 10000000000)) == 0", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := gate.New(builtinBundle(t), gate.WithRunner(gate.Child{Memory: 300 << 20}), gate.WithTime(tc.time))
			start := time.Now()
			_, err := g.AdmitBundle(context.Background(), user(t, "own", map[string]string{"a.rego": hold + "true", "a_test.rego": "package extend.rollout.a_test\n" + tc.test}), nil, nil)
			var refused *gate.RefusedError
			if !errors.As(err, &refused) || refused.Stage != gate.Limits && refused.Stage != gate.Tests {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// How many records a manager remembers, and how large they are, does not decide about a bundle: the child gets a sample, of all
// points, within what the chart lets it have.
func TestAFullBufferOfRecordsRefusesNothing(t *testing.T) {
	e, err := engine.FromBundle(builtinBundle(t), engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}
	full := record.NewBuffer(record.WithBytes(16 << 20))
	_, seldom := engine.Decide(t.Context(), e, points.ScalePoint(), subject, points.ScaleInput{})
	for _, size := range []int{200, 5 << 10, 3 << 20} {
		workload := points.Workload{Annotations: map[string]string{"note": strings.Repeat("x", size)}}
		_, r := engine.Decide(t.Context(), e, points.PlanPoint(), subject, points.PlanInput{Workload: workload, Update: 1})
		for range (6 << 20) / size {
			full.RecordDecision(r)
		}
	}
	full.RecordDecision(seldom)
	records := full.FindRecords(record.Query{})
	for how, runner := range map[string]gate.Runner{"in this process": gate.InProcess{}, "in a child": gate.Child{Memory: childMemory}} {
		t.Run(how, func(t *testing.T) {
			report, err := gate.New(builtinBundle(t), gate.WithRunner(runner)).AdmitBundle(t.Context(), user(t, "freeze", map[string]string{"a.rego": hold + "true"}), nil, records)
			if err != nil || report.Replayed == 0 || report.Replayed > 1000 {
				t.Fatalf("%d of %d are made again, %v", report.Replayed, len(records), err)
			}
		})
	}
}

func TestReplay(t *testing.T) {
	e, err := engine.FromBundle(builtinBundle(t), engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var records []decision.Record
	for n := range 5 {
		_, r := engine.Decide(context.Background(), e, points.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, points.PlanInput{Update: n})
		records = append(records, r)
	}
	for name, tc := range map[string]struct {
		source      string
		differences int
		refused     string
	}{
		"the same answers": {hold + "input.update > 100", 0, ""},
		"other answers":    {hold + "input.update > 2", 2, ""},
		"no answer":        {hold + "to_number(input.workload.kind) > 5", 5, "rollout/plan of CloneSet shop/web, which was decided, would be without a decision (Error)"},
	} {
		for how, runner := range runners() {
			t.Run(name+"/"+how, func(t *testing.T) {
				g := gate.New(builtinBundle(t), gate.WithRunner(runner))
				report, err := g.AdmitBundle(context.Background(), user(t, "own", map[string]string{"a.rego": tc.source}), nil, records)
				if report.Replayed != 5 || len(report.Differences) != tc.differences {
					t.Errorf("%d replayed, %d differences", report.Replayed, len(report.Differences))
				}
				if last := report.Stages[len(report.Stages)-1]; len(report.Stages) != 6 || last.Stage != gate.Replay || last.Duration <= 0 {
					t.Errorf("the stages are %v", report.Stages)
				}
				if (tc.refused == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.refused)) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
			})
		}
	}
}

// TestAdmitRulesOfProtection has the built-in policies themselves in front: they
// know what is wrong with guards and settings.
func TestAdmitRulesOfProtection(t *testing.T) {
	b, err := bundle.ReadBuiltin(os.DirFS("../../../policies"))
	if err != nil {
		t.Fatal(err)
	}
	const sound = `{"reason": "R", "message": "m"}`
	const pods = `"group": "", "resource": "pods", "operations": ["DELETE"]`
	for name, tc := range map[string]struct {
		tenant bool
		rules  string
		want   string // of the only problem
	}{
		"a denial":                               {tenant: true, rules: `deny contains ` + sound + ` if input.recent.deletes > 20`},
		"a denial for a while":                   {rules: `deny contains {"reason": "R", "message": "m", "rule": "r", "until": "2030-01-01T00:00:00Z"} if input.request.user.name == "ann"`},
		"a denial without a message":             {rules: `deny contains {"reason": "R"}`, want: "a.rego:2:1: data.extend.protection.a.deny cannot be the answer: the field message is missing"},
		"a denial of one pod":                    {rules: `deny contains {"reason": "R", "message": "m", "pod": "web-1"}`, want: "a.rego:2:1: data.extend.protection.a.deny cannot be the answer: there is no field pod; there are message, reason, rule, until"},
		"a denial that is no set":                {rules: `deny := ` + sound, want: "a.rego:2:1: deny must be a set"},
		"a fact that is not there":               {rules: `deny contains ` + sound + ` if input.user.name == "ann"`, want: "a.rego:2:50: rego_type_error: undefined ref: input.user.name"},
		"an exemption":                           {rules: `exempt contains ` + sound + ` if "sre" in input.request.user.groups`},
		"an exemption with a condition too many": {rules: `exempt contains {"reason": "R", "message": "m", "until": "2030-01-01T00:00:00Z"}`, want: "a.rego:2:1: data.extend.protection.a.exempt cannot be the answer: there is no field until"},
		"an exemption of a tenant":               {tenant: true, rules: `exempt contains ` + sound, want: "a.rego:2:1: exempt (break glass) is for platform engineers; a bundle of a namespace may have deny, guard"},
		"a guard":                                {tenant: true, rules: `guard contains {` + pods + `, "namespaces": ["shop"], "labels": {"tier": "gold"}}`},
		"a guard under a gate":                   {rules: `guard contains {` + pods + `} if input.gates.budgetUpdate`},
		"a guard that is no set":                 {rules: `guard := [{` + pods + `}]`, want: "a.rego:2:1: guard must be a set"},
		"a guard without a group":                {rules: `guard contains {"resource": "pods", "operations": ["DELETE"]}`, want: "a.rego:2:1: data.extend.protection.a.guard cannot be the answer: the field group is missing"},
		"a guard with a misspelt field":          {rules: `guard contains {` + pods + `, "namespace": "shop"}`, want: "a.rego:2:1: data.extend.protection.a.guard cannot be the answer: there is no field namespace"},
		"a guard of everything":                  {rules: `guard contains {"group": "*", "resource": "*", "operations": ["DELETE"]}`, want: "a.rego:2:1: guard: resource * of group * is never sent"},
		"a guard of what is never done":          {rules: `guard contains {"group": "apps", "resource": "deployments", "operations": ["EVICT"]}`, want: `a.rego:2:1: guard: operations of deployments are ["EVICT"], want a list of DELETE, UPDATE`},
		"a guard that waits for a request":       {rules: `guard contains {` + pods + `} if input.request.operation == "DELETE"`, want: "a.rego:2:1: guard: it names nothing when its input has the gates alone"},
		"a guard that fails":                     {rules: `guard contains {` + pods + `} if to_number("x") > 1`, want: "a.rego:2:1: guards and settings cannot be read (Error): "},
		"settings":                               {rules: `settings := {"kinds": {"cronjobs.batch": {"cascading": ""}}, "breakGlass": {"users": ["ann"], "groups": {"sre"}}}`},
		"settings of a tenant":                   {tenant: true, rules: `settings := {}`, want: "a.rego:2:1: settings (change a documented knob) is for platform engineers; a bundle of a namespace may have deny, guard"},
		"settings that are not there":            {rules: `settings := {"kind": {}}`, want: "a.rego:2:1: data.extend.protection.a.settings cannot be the answer: there is no field kind; there are breakGlass, kinds"},
		"a kind that is built in":                {rules: `settings := {"kinds": {"deployments.apps": {"cascading": ""}}}`, want: "a.rego:2:1: settings: kinds has deployments.apps, which is protected already and stays as it is"},
		"a kind with an unknown count":           {rules: `settings := {"kinds": {"cronjobs.batch": {"cascading": "jobs"}}}`, want: `a.rego:2:1: settings: kinds has {"cascading": "jobs"} for cronjobs.batch`},
		"a glass for impossible users":           {rules: `settings := {"breakGlass": {"users": "ann"}}`, want: "a.rego:2:1: data.extend.protection.a.settings cannot be the answer: breakGlass: users: it is a string, want an array"},
	} {
		t.Run(name, func(t *testing.T) {
			var opts []bundle.Option
			if tc.tenant {
				opts = append(opts, bundle.AsTenant("shop"))
			}
			_, err := gate.New(b).AdmitBundle(t.Context(), user(t, "own", map[string]string{"a.rego": "package extend.protection.a\n" + tc.rules}, opts...), nil, nil)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *gate.RefusedError
			if !errors.As(err, &refused) || len(refused.Problems) != 1 || !strings.HasPrefix(refused.Problems[0].String(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestTheBuiltinPoliciesAndTheirExamplesPass(t *testing.T) {
	b, err := bundle.ReadBuiltin(os.DirFS("../../../policies"))
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(b, gate.WithCoverage())
	report, err := g.AdmitBundle(context.Background(), b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Coverage == nil || report.Coverage.CoveredPercent() < 50 {
		t.Errorf("coverage %+v", report.Coverage)
	}
	examples, err := os.ReadDir("../../../policies/examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range examples {
		files := os.DirFS("../../../policies/examples/" + x.Name())
		example, err := bundle.FromFS(x.Name(), files)
		if err != nil || len(example.Modules) == 0 {
			continue // generators live there too
		}
		if _, err := g.AdmitBundle(context.Background(), example, nil, nil); err != nil {
			t.Error(err)
		}
	}
}
