// SPDX-License-Identifier: Apache-2.0

package podscope

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/test/proptest"
)

func set(pods, namespaces *metav1.LabelSelector) *kruise.SidecarSet {
	s := &kruise.SidecarSet{}
	s.Spec.Selector, s.Spec.NamespaceSelector = pods, namespaces
	return s
}

// environmentOf is the CEL environment of the API server for match conditions.
func environmentOf(t testing.TB) *cel.Env {
	t.Helper()
	base := environment.MustBaseEnvSet(version.MajorMinor(1, 28))
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType), cel.Variable("request", cel.DynType)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set.NewExpressionsEnv()
}

// evaluator evaluates a condition, and says what it cost.
func evaluator(t testing.TB, env *cel.Env, condition string) func(namespace string, of map[string]string) (bool, uint64) {
	t.Helper()
	ast, issues := env.Compile(condition)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", condition, issues.Err())
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return func(namespace string, of map[string]string) (bool, uint64) {
		metadata := map[string]any{"generateName": "web-"}
		if of != nil {
			all := map[string]any{}
			for k, v := range of {
				all[k] = v
			}
			metadata["labels"] = all
		}
		out, details, err := program.Eval(map[string]any{"object": map[string]any{"metadata": metadata}, "request": map[string]any{"namespace": namespace}})
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		return out.Value() == true, *details.ActualCost()
	}
}

// What a condition says of a pod is what the selectors say.
func TestConditionsSaySelectors(t *testing.T) {
	env := environmentOf(t)
	in := func(op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x.io/app", Operator: op, Values: values}}}
	}
	web, empty, other, without := map[string]string{"x.io/app": "web"}, map[string]string{"x.io/app": ""}, map[string]string{"x.io/app": "db"}, map[string]string{"a": "b"}
	name := func(names ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: names}}}
	}
	for title, tc := range map[string]struct {
		pods, namespaces *metav1.LabelSelector
		yes, no          []map[string]string
	}{
		"a label":                             {pods: &metav1.LabelSelector{MatchLabels: web}, yes: []map[string]string{web}, no: []map[string]string{other, empty, without, nil}},
		"an empty label":                      {pods: &metav1.LabelSelector{MatchLabels: empty}, yes: []map[string]string{empty}, no: []map[string]string{web, without, nil}},
		"In":                                  {pods: in(metav1.LabelSelectorOpIn, "web", "db"), yes: []map[string]string{web, other}, no: []map[string]string{empty, without, nil}},
		"In with an empty value":              {pods: in(metav1.LabelSelectorOpIn, "", "db"), yes: []map[string]string{empty, other}, no: []map[string]string{web, without, nil}},
		"NotIn":                               {pods: in(metav1.LabelSelectorOpNotIn, "web"), yes: []map[string]string{other, empty, without, nil}, no: []map[string]string{web}},
		"NotIn with an empty value":           {pods: in(metav1.LabelSelectorOpNotIn, ""), yes: []map[string]string{web, without, nil}, no: []map[string]string{empty}},
		"Exists":                              {pods: in(metav1.LabelSelectorOpExists), yes: []map[string]string{web, empty}, no: []map[string]string{without, nil}},
		"DoesNotExist":                        {pods: in(metav1.LabelSelectorOpDoesNotExist), yes: []map[string]string{without, nil}, no: []map[string]string{web, empty}},
		"the name of the namespace":           {pods: in(metav1.LabelSelectorOpExists), namespaces: name("shop", "bank"), yes: []map[string]string{web}, no: []map[string]string{without}},
		"the name of another":                 {pods: in(metav1.LabelSelectorOpExists), namespaces: name("bank"), no: []map[string]string{web, without}},
		"a label of the namespace":            {pods: &metav1.LabelSelector{MatchLabels: web}, namespaces: &metav1.LabelSelector{MatchLabels: other}, yes: []map[string]string{web}, no: []map[string]string{other}},
		"no namespace by its name":            {pods: &metav1.LabelSelector{MatchLabels: web}, namespaces: &metav1.LabelSelector{}, yes: []map[string]string{web}},
		"nothing":                             {pods: &metav1.LabelSelector{}, no: []map[string]string{web, without, nil}},
		"a selector that cannot be read":      {pods: in("Near", "web"), yes: []map[string]string{web, other, without, nil}},
		"a value that no label has":           {pods: in(metav1.LabelSelectorOpIn, "it's not"), yes: []map[string]string{web, nil}},
		"In of nothing, which cannot be read": {pods: in(metav1.LabelSelectorOpIn), yes: []map[string]string{web, nil}},
		"a namespace that cannot be read":     {pods: &metav1.LabelSelector{MatchLabels: web}, namespaces: in("Near"), yes: []map[string]string{web, other, nil}},
	} {
		t.Run(title, func(t *testing.T) {
			r := DescribePods(set(tc.pods, tc.namespaces))
			condition, _ := CELCondition([]Selector{r})
			is := func(string, map[string]string) (bool, uint64) { return false, 0 }
			if condition != "" {
				is = evaluator(t, env, condition)
			}
			for want, all := range map[bool][]map[string]string{true: tc.yes, false: tc.no} {
				for _, pod := range all {
					if got, _ := is("shop", pod); got != want || r.MatchesPod("shop", pod) != want {
						t.Errorf("%v: %t by %q, %t by the description, want %t", pod, got, condition, r.MatchesPod("shop", pod), want)
					}
				}
			}
		})
	}
}

// random makes selectors of few keys and values, so that they meet.
type random struct{ *rand.Rand }

func (r random) of(texts ...string) string { return texts[r.IntN(len(texts))] }

func (r random) key() string   { return r.of("app", "tier", "x.io/zone", "kubernetes.io/metadata.name") }
func (r random) value() string { return r.of("", "a", "b", "c-1", "D_2.x") }

func (r random) labels() map[string]string {
	if r.IntN(8) == 0 {
		return nil
	}
	out := map[string]string{}
	for range r.IntN(4) {
		out[r.key()] = r.value()
	}
	return out
}

func (r random) selector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if r.IntN(2) == 0 {
		s.MatchLabels = r.labels()
	}
	for range r.IntN(3) {
		op := metav1.LabelSelectorOperator(r.of("In", "NotIn", "Exists", "DoesNotExist"))
		q := metav1.LabelSelectorRequirement{Key: r.key(), Operator: op}
		for len(op) <= 5 && (len(q.Values) == 0 || r.IntN(2) == 0) { // In and NotIn
			q.Values = append(q.Values, r.value())
		}
		s.MatchExpressions = append(s.MatchExpressions, q)
	}
	return s
}

// Whatever SidecarSets there are: a pod that one of them selects is sent, whatever the labels of its namespace; a pod that none
// selects by its labels is not, as long as the condition is exact.
func TestNoPodIsLost(t *testing.T) {
	env := environmentOf(t)
	const seed = 20261123
	r := random{rand.New(rand.NewPCG(seed, seed))}
	sent, kept := 0, 0
	for n := range proptest.Often(3000) {
		var all []Selector
		var sets []*kruise.SidecarSet
		for range 1 + r.IntN(4) {
			s := set(r.selector(), nil)
			if r.IntN(2) == 0 {
				s.Spec.NamespaceSelector = r.selector()
			}
			sets, all = append(sets, s), append(all, DescribePods(s))
		}
		condition, precision := CELCondition(all)
		exact := func(string, map[string]string) (bool, uint64) { return false, 0 }
		if condition != "" {
			exact = evaluator(t, env, condition)
		}
		keys := func(string, map[string]string) (bool, uint64) { return true, 0 }
		present := slices.DeleteFunc(slices.Clone(all), func(r Selector) bool { return r.None })
		if parts := byKeys(present); parts != nil && condition != "" {
			keys = evaluator(t, env, "("+strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " || ")+")")
		}
		for range 10 {
			pod, namespace := r.labels(), r.value()
			of := map[string]string{"kubernetes.io/metadata.name": namespace, "app": r.value(), "tier": r.value()}
			selected, described := false, false
			for i, s := range sets {
				selector, err := matching.NewSelector(s)
				if err != nil {
					t.Fatal(err)
				}
				selected = selected || selector.MatchesLabels(pod) && selector.MatchesNamespace(namespace, of)
				described = described || all[i].MatchesPod(namespace, pod)
			}
			got, _ := exact(namespace, pod)
			coarse, _ := keys(namespace, pod)
			if selected && (!got || !coarse) {
				t.Fatalf("round %d: pod %v of namespace %s is lost by %q, exact %t, by keys %t", n, pod, namespace, condition, got, coarse)
			}
			if got != described || got && !coarse {
				t.Fatalf("round %d: pod %v of namespace %s: %t by %q (%s), %t by the descriptions, %t by keys", n, pod, namespace, got, condition, precision, described, coarse)
			}
			if got {
				sent++
			} else {
				kept++
			}
		}
	}
	if sent < 100 || kept < 100 {
		t.Errorf("%d pods are sent and %d are not: too few of a sort", sent, kept)
	}
}

// A requirement alone says what the API's own selector says.
func TestARequirementIsASelector(t *testing.T) {
	env := environmentOf(t)
	const seed = 7
	r := random{rand.New(rand.NewPCG(seed, seed))}
	for range proptest.Often(2000) {
		s := r.selector()
		if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		condition, _ := CELCondition([]Selector{DescribePods(set(s, nil))})
		is := evaluator(t, env, condition)
		for range 5 {
			pod := r.labels()
			if got, _ := is("shop", pod); got != selector.Matches(labels.Set(pod)) {
				t.Fatalf("%v: %t by %q, and the selector is %s", pod, got, condition, selector)
			}
		}
	}
}

// perCall is what the API server lets one condition cost.
const perCall = 1_000_000

// Many SidecarSets have one condition, which gets coarser when it would be too long, and costs little whatever the pod.
func TestAThousand(t *testing.T) {
	env := environmentOf(t)
	many := map[string]string{}
	for i := range 5000 {
		many[fmt.Sprintf("l-%d.io/label", i)] = strings.Repeat("x", 63)
	}
	for title, tc := range map[string]struct {
		selector func(i int) *metav1.LabelSelector
		want     Precision
		yes, no  map[string]string
	}{
		"one label with a thousand values": {
			func(i int) *metav1.LabelSelector {
				return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", i)}}
			},
			Exact, map[string]string{"app": "app-999"}, map[string]string{"app": "other"},
		},
		"two labels each": {
			func(i int) *metav1.LabelSelector {
				return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", i), "tier": "web"}}
			},
			Keys, map[string]string{"app": "app-999", "tier": "web"}, map[string]string{"tier": "web"},
		},
		"a label of its own each": {
			func(i int) *metav1.LabelSelector {
				return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fmt.Sprintf("inject-%d.example.com/sidecar", i), Operator: metav1.LabelSelectorOpExists}}}
			},
			Any, map[string]string{"app": "x"}, nil,
		},
		"pods without a label": {
			func(i int) *metav1.LabelSelector {
				return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fmt.Sprintf("no-sidecar-%d", i), Operator: metav1.LabelSelectorOpDoesNotExist}}}
			},
			Any, nil, nil,
		},
	} {
		t.Run(title, func(t *testing.T) {
			var all []Selector
			for i := range 1000 {
				all = append(all, DescribePods(set(tc.selector(i), nil)))
			}
			condition, precision := CELCondition(all)
			if precision != tc.want || len(condition) > Longest {
				t.Fatalf("the condition of %d bytes is %s, want %s", len(condition), precision, tc.want)
			}
			is := evaluator(t, env, condition)
			if got, _ := is("shop", tc.yes); !got {
				t.Error("the pod of a SidecarSet is not sent")
			}
			if tc.no != nil {
				if got, _ := is("shop", tc.no); got {
					t.Error("a pod of none is sent")
				}
			}
			_, cost := is("shop", many)
			t.Logf("%d bytes, cost %d of %d", len(condition), cost, perCall)
			if cost > perCall/10 {
				t.Errorf("it costs %d of %d", cost, perCall)
			}
		})
	}
}

// A description that would be long says less.
func TestLongDescriptionsSayLess(t *testing.T) {
	var values []string
	for i := range 500 {
		values = append(values, fmt.Sprint("value-", i))
	}
	long := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}}
	r := DescribePods(set(long, nil))
	if len(r.Labels) != 1 || r.Labels[0].Key != "tier" || !r.MatchesPod("shop", map[string]string{"app": "value-7", "tier": "web"}) {
		t.Errorf("got %+v", r)
	}
	long.MatchLabels = nil
	if r = DescribePods(set(long, nil)); !r.MatchesAllPods() {
		t.Errorf("got %+v", r)
	}
	if r = DescribePods(set(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: values},
	}})); len(r.Namespaces) != 0 || len(r.Labels) != 1 {
		t.Errorf("got %+v", r)
	}
}
