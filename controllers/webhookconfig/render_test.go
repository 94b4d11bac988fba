// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/steps"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

var update = flag.Bool("update", false, "write testdata anew")

func service() clientConfig {
	return clientConfig{admissionv1.WebhookClientConfig{
		CABundle: []byte("ca"),
		Service:  &admissionv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/validate-apps-kruise-io-cloneset"), Port: ptr.To[int32](443)},
	}}
}

func installation() Config { return installed(allGates(), false) }

// installed is an installation with these gates. KruisePodReadinessGate is on if readiness is for all.
func installed(gates protection.Gates, readinessForAll bool) Config {
	enabled, err := steps.ListEnabled(func(f featuregate.Feature) bool {
		return f == features.PodUnavailableBudgetDeleteGate && gates.BudgetDelete || f == features.PodUnavailableBudgetUpdateGate && gates.BudgetUpdate ||
			f == features.KruisePodReadinessGate && readinessForAll
	}, steps.Needs{})
	if err != nil {
		panic(err) // two steps have one place
	}
	return Config{
		Namespace: "kruise-system", Pods: true, Created: enabled.CreatedMatches(), Stored: enabled.StoredMatches(), PodFailurePolicy: admissionv1.Ignore, TimeoutSeconds: 3,
	}
}

func allGates() protection.Gates {
	return protection.Gates{Deletion: true, CRDCascading: true, BudgetDelete: true, BudgetUpdate: true}
}

func someKinds() []protection.ProtectedKind {
	return []protection.ProtectedKind{
		{Group: "apps.kruise.io", Resource: "clonesets", Cascading: protection.CascadeReplicas},
		{Resource: "services"},
		{Resource: "namespaces", Cascading: protection.CascadeNamespace},
	}
}

func guard(group, resource string, operations ...string) protection.Guard {
	return protection.Guard{Rule: "r", Group: group, Resource: resource, Operations: operations}
}

// closed is a guard that must not fail open.
func closed(g protection.Guard) protection.Guard {
	g.FailurePolicy = protection.FailurePolicyFail
	return g
}

// Each case is one file of testdata: the webhook configuration.
func TestRender(t *testing.T) {
	gold := guard("", "pods", protection.Delete, protection.Evict)
	gold.Namespaces, gold.Labels = []string{"shop", "bank"}, map[string]string{"tier": "gold"}
	web := podscope.Selector{Labels: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}
	for name, tc := range map[string]struct {
		config  func(*Config)
		gates   protection.Gates
		answer  protection.GuardsOutput
		budgets []string
		// sidecars are the pods of SidecarSets.
		sidecars []podscope.Selector
		// states are the namespaces that have PersistentPodStates.
		states []string
		url    string
		left   []string
	}{
		"nothing but the readiness gate of our pods": {gates: allGates()},
		"protected kinds":                       {gates: allGates(), answer: protection.GuardsOutput{Kinds: someKinds()}},
		"protected kinds while the gate is off": {answer: protection.GuardsOutput{Kinds: someKinds()}},
		"a manager outside of the cluster has no twin": {
			gates: allGates(), url: "https://localhost:9443/base/validate-apps-kruise-io-cloneset", answer: protection.GuardsOutput{Kinds: someKinds()[:1]},
		},
		"budgets": {gates: protection.Gates{BudgetDelete: true}, budgets: []string{"bank", "shop"}, config: func(c *Config) {
			c.PodFailurePolicy, c.TimeoutSeconds = admissionv1.Fail, 2
		}},
		"budgets that hold back updates too": {gates: allGates(), budgets: []string{"shop"}},
		"a SidecarSet":                       {gates: allGates(), sidecars: []podscope.Selector{web}},
		"SidecarSets and budgets":            {gates: allGates(), sidecars: []podscope.Selector{web, {Namespaces: []string{"shop"}, Labels: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}}, budgets: []string{"shop"}},
		"a SidecarSet for all pods":          {gates: allGates(), sidecars: []podscope.Selector{web, {}}},
		"PersistentPodStates":                {gates: allGates(), states: []string{"games", "it's"}},
		"PersistentPodStates and budgets":    {gates: allGates(), states: []string{"games"}, budgets: []string{"shop"}},
		"budgets while the gates are off":    {budgets: []string{"shop"}},
		"no webhooks for pods": {gates: allGates(), budgets: []string{"shop"}, config: func(c *Config) { c.Pods = false },
			answer: protection.GuardsOutput{Guards: []protection.Guard{gold}},
			left:   []string{`a guard of rule "r" about pods is left out: there are no webhooks for pods while the feature gate PodWebhook is off`}},
		"a readiness gate for all pods": {gates: allGates(), budgets: []string{"shop"}, config: func(c *Config) { *c = installed(allGates(), true) }},
		"users' rules": {gates: allGates(), answer: protection.GuardsOutput{Kinds: someKinds(), Guards: []protection.Guard{
			gold, gold, guard("", "pods", protection.Resize, protection.Update),
			guard("apps.kruise.io", "clonesets", protection.Update, protection.Delete), guard("batch", "cronjobs", protection.Delete, protection.Evict),
			{Rule: "r", Resource: "configmaps", Operations: []string{protection.Update}, Namespaces: []string{"it's"}, Labels: map[string]string{"a": "", `b'] == '\`: "ü\n😀"}},
		}}},
		"users' rules that must not fail open": {gates: allGates(), budgets: []string{"bank"}, answer: protection.GuardsOutput{Kinds: someKinds(), Guards: []protection.Guard{
			closed(gold), guard("", "pods", protection.Update), closed(guard("", "persistentvolumeclaims", protection.Delete)), closed(guard("apps.kruise.io", "clonesets", protection.Delete)),
			guard("batch", "cronjobs", protection.Delete),
		}}},
		"what is never guarded": {gates: allGates(), answer: protection.GuardsOutput{
			Kinds: []protection.ProtectedKind{{Resource: "nodes"}, {Group: "coordination.k8s.io", Resource: "leases"}, {Group: "*", Resource: "x"}},
			Guards: []protection.Guard{
				guard("", "*", protection.Delete), guard("", "pods/status", protection.Update), guard("", "Pods", protection.Update), guard("apps", "deployments", protection.Evict),
				guard("admissionregistration.k8s.io", "validatingwebhookconfigurations", protection.Delete),
			},
		}, left: []string{
			`a guard of rule "r" about * is left out: "*" is no resource: name one in the plural and in lower case, such as deployments`,
			`a guard of rule "r" about Pods is left out: "Pods" is no resource: name one in the plural and in lower case, such as deployments`,
			`a guard of rule "r" about deployments.apps is left out: only pods can be evicted or resized`,
			`a guard of rule "r" about pods/status is left out: "pods/status" is no resource: name one in the plural and in lower case, such as deployments`,
			`a guard of rule "r" about validatingwebhookconfigurations.admissionregistration.k8s.io is left out: the API server never asks about the configuration of admission itself`,
			`the protected kind leases.coordination.k8s.io is left out: leases are never guarded, as clusters heal by them`,
			`the protected kind nodes is left out: nodes are never guarded, as clusters heal by them`,
			`the protected kind x.* is left out: "*" is no API group`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := renderFacts{Config: installed(tc.gates, false), gates: tc.gates, budgets: tc.budgets, sidecars: tc.sidecars, having: map[match.Namespaces][]string{match.WithPersistentPodStates: tc.states}, call: service()}
			if tc.config != nil {
				tc.config(&f.Config)
			}
			if tc.url != "" {
				f.call = clientConfig{admissionv1.WebhookClientConfig{CABundle: []byte("ca"), URL: &tc.url}}
			}
			var left []string
			f.kinds, f.users, left = filterGuarded(tc.answer, f.gates, f.Pods)
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Error(diff)
			}
			r, err := renderWebhooks(f)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""), r)
		})
	}
}

func golden(t *testing.T, name string, r rendered) {
	t.Helper()
	var got strings.Builder
	for _, part := range []struct {
		name string
		of   any
	}{{"mutating", r.mutating}, {"validating", r.validating}, {"policy", r.policy}, {"binding", r.binding}} {
		text, err := yaml.Marshal(map[string]any{part.name: part.of})
		if err != nil {
			t.Fatal(err)
		}
		got.Write(text)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestManyNamespacesAreNotListed(t *testing.T) {
	var many []string
	for i := range mostNamespaces + 1 {
		many = append(many, fmt.Sprintf("ns-%03d", i))
	}
	f := renderFacts{Config: installation(), gates: allGates(), budgets: many, call: service()}
	r, err := renderWebhooks(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.mutating {
		if n := len(w.NamespaceSelector.MatchExpressions); n != 2 || w.Name != "mpod.kb.io" {
			t.Errorf("%s selects by %d expressions", w.Name, n)
		}
	}
	for _, w := range r.validating {
		if n := len(w.NamespaceSelector.MatchExpressions); n != 2 {
			t.Errorf("%s selects by %d expressions", w.Name, n)
		}
	}
	f.budgets = many[:mostNamespaces]
	if r, err = renderWebhooks(f); err != nil || len(r.mutating) != 2 || len(r.mutating[0].NamespaceSelector.MatchExpressions[2].Values) != mostNamespaces {
		t.Errorf("%d entries, %v", len(r.mutating), err)
	}
}

// Pods are sent for a WorkloadSpread only from namespaces that have one.
func TestSpreadsConcernTheirNamespacesAlone(t *testing.T) {
	f := renderFacts{Config: Config{
		Pods: true, Namespace: "kruise-system",
		Created: []match.Created{{Name: "spread", Namespaces: match.WithSpreads, Conditions: []admissionv1.MatchCondition{{Name: "owned", Expression: "x"}}}},
		Stored:  []match.Stored{{Operations: []string{protection.Delete, protection.Evict}, Namespaces: match.WithSpreads, Conditions: []string{"y"}}},
	}, call: service()}
	r, err := renderWebhooks(f)
	if err != nil || len(r.mutating)+len(r.validating) != 0 {
		t.Errorf("without a spread there are %d and %d entries, %v", len(r.mutating), len(r.validating), err)
	}
	f.having = map[match.Namespaces][]string{match.WithSpreads: {"bank", "shop"}}
	if r, err = renderWebhooks(f); err != nil || len(r.mutating) != 1 || len(r.validating) != 2 {
		t.Fatalf("there are %d and %d entries, %v", len(r.mutating), len(r.validating), err)
	}
	const in = "request.namespace in ['bank', 'shop']"
	if c := r.mutating[0].MatchConditions; len(c) != 2 || strings.ReplaceAll(c[0].Expression, `"`, "'") != in || c[1].Expression != "x" {
		t.Errorf("pods that are created: %+v", c)
	}
	if c := r.validating[0].MatchConditions; !strings.Contains(strings.ReplaceAll(c[1].Expression, `"`, "'"), in) || !strings.Contains(c[1].Expression, "y") {
		t.Errorf("pods that are deleted: %+v", c)
	}
	if s := r.validating[1].NamespaceSelector.MatchExpressions; len(s) != 3 || len(s[2].Values) != 2 {
		t.Errorf("evictions are asked about in %+v", s)
	}
	for range mostNamespaces {
		f.having[match.WithSpreads] = append(f.having[match.WithSpreads], "x")
	}
	if r, err = renderWebhooks(f); err != nil || r.mutating[0].MatchConditions[0].Expression != "true" {
		t.Errorf("with many namespaces: %+v, %v", r.mutating[0].MatchConditions, err)
	}
}

// Steps bring what concerns them; a pod that concerns two of them is sent once.
func TestStepsSayWhatConcernsThem(t *testing.T) {
	when := func(name, expression string) match.Created {
		return match.Created{Name: name, Conditions: []admissionv1.MatchCondition{{Name: name, Expression: expression}}}
	}
	budgeted := match.Created{Name: "budget", Namespaces: match.WithBudgets}
	for name, tc := range map[string]struct {
		created []match.Created
		budgets []string
		want    []string // name: namespaces: conditions
	}{
		"no step":                              {},
		"a step for all pods":                  {[]match.Created{when("a", "x"), {Name: "b"}}, nil, []string{"mpod.kb.io: all:"}},
		"a step with a condition":              {[]match.Created{when("a", "x")}, nil, []string{"mpod-a.kb.io: all: a=x"}},
		"two steps with conditions":            {[]match.Created{when("a", "x"), when("b", "y")}, nil, []string{"mpod-some.kb.io: all: a-step-is-about-it=(x || y)"}},
		"a step for budgets, without any":      {[]match.Created{budgeted}, nil, nil},
		"a step for budgets":                   {[]match.Created{budgeted}, []string{"shop"}, []string{"mpod.kb.io: In shop:"}},
		"a step for budgets and one elsewhere": {[]match.Created{when("a", "x"), budgeted}, []string{"shop"}, []string{"mpod.kb.io: In shop:", "mpod-a.kb.io: NotIn shop: a=x"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := renderFacts{Config: Config{Pods: true, Namespace: "kruise-system", Created: tc.created}, budgets: tc.budgets, call: service()}
			r, err := renderWebhooks(f)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range r.mutating {
				line := w.Name + ": all:"
				if more := w.NamespaceSelector.MatchExpressions[2:]; len(more) > 0 {
					line = fmt.Sprintf("%s: %s %s:", w.Name, more[0].Operator, strings.Join(more[0].Values, ","))
				}
				for _, c := range w.MatchConditions {
					line += " " + c.Name + "=" + c.Expression
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStepsSayWhichRequestsConcernThem(t *testing.T) {
	everywhere := match.Stored{Operations: []string{protection.Delete, protection.Evict}, Conditions: []string{"x"}}
	budgets := match.Stored{Operations: []string{protection.Resize}, Namespaces: match.WithBudgets, Conditions: []string{"y", "z"}}
	for name, tc := range map[string]struct {
		stored    []match.Stored
		budgets   []string
		condition string
		rules     string
		evictions int // requirements of the namespaces
	}{
		"no step":                         {rules: ""},
		"a step for all namespaces":       {[]match.Stored{everywhere}, nil, "(request.operation in ['DELETE'] && x)", "[DELETE] [pods]; ", 2},
		"a step for budgets, without any": {[]match.Stored{budgets}, nil, "", "", 0},
		"a step for budgets":              {[]match.Stored{budgets}, []string{"shop"}, "(request.operation in ['UPDATE'] && y && z)", "[UPDATE] [pods/resize]; ", 0},
		"both": {[]match.Stored{everywhere, budgets}, []string{"shop"}, "((request.operation in ['DELETE'] && x) || (request.operation in ['UPDATE'] && y && z))",
			"[DELETE] [pods]; [UPDATE] [pods/resize]; ", 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := renderWebhooks(renderFacts{Config: Config{Pods: true, Namespace: "kruise-system", Stored: tc.stored}, budgets: tc.budgets, call: service()})
			if err != nil {
				t.Fatal(err)
			}
			condition, rules, evictions := "", "", 0
			for _, w := range r.validating {
				if w.Name == "vpodeviction.kb.io" {
					evictions = len(w.NamespaceSelector.MatchExpressions)
					continue
				}
				condition = w.MatchConditions[1].Expression
				for _, rule := range w.Rules {
					rules += fmt.Sprintf("%v %v; ", rule.Operations, rule.Resources)
				}
			}
			if condition != tc.condition || rules != tc.rules || evictions != tc.evictions {
				t.Errorf("%s of %s, evictions by %d", condition, rules, evictions)
			}
		})
	}
}

// However much users guard, no condition is longer than the API server reads.
func TestConditionsStayShort(t *testing.T) {
	f := renderFacts{Config: installation(), gates: allGates(), call: service()}
	long := guard("", "pods", protection.Delete)
	for i := range 5000 {
		long.Namespaces = append(long.Namespaces, fmt.Sprintf("ns-%05d", i))
	}
	f.users = append(f.users, long)
	for i := range 400 {
		g := guard("", "pods", protection.Delete)
		g.Labels = map[string]string{"team": fmt.Sprintf("team-%03d-%s", i, strings.Repeat("x", 200))}
		f.users = append(f.users, g)
		g.Group, g.Resource = "batch", "cronjobs"
		f.users = append(f.users, g)
	}
	r, err := renderWebhooks(f)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, w := range r.validating {
		if names[w.Name] {
			t.Errorf("two are named %s", w.Name)
		}
		names[w.Name] = true
		for _, c := range w.MatchConditions {
			if len(c.Expression) > 90_000 {
				t.Errorf("condition %s of %s has %d characters", c.Name, w.Name, len(c.Expression))
			}
		}
	}
	if !names["vguard.kb.io"] || !names["vguard-2.kb.io"] || !names["vpod.kb.io"] {
		t.Errorf("there are %v", names)
	}
}

func TestCallsThatCannotBeMade(t *testing.T) {
	hook := admissionv1.ValidatingWebhook{Name: "v"}
	for want, chart := range map[string]*admissionv1.ValidatingWebhookConfiguration{
		"has no webhooks":     {},
		"has no caBundle yet": {Webhooks: []admissionv1.ValidatingWebhook{hook}},
	} {
		if _, err := callOf(chart); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for want, c := range map[string]admissionv1.WebhookClientConfig{
		"neither a service nor a URL": {},
		"reading the URL":             {URL: ptr.To("https://%")},
	} {
		if _, err := renderWebhooks(renderFacts{Config: installation(), call: clientConfig{c}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
