// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/module"
)

func findPodText(m *ast.Module, _ *bundle.Bundle) []module.Problem {
	return eachPod(m, func(name string) string {
		if slices.Contains([]string{"sprintf", "concat", "format_int", "internal.template_string", "replace", "upper", "lower"}, name) {
			return name + " is evaluated for each pod: compare facts as they are, or make the text once, outside"
		}
		return ""
	})
}

func findPodArithmetic(m *ast.Module, _ *bundle.Bundle) []module.Problem {
	return eachPod(m, func(name string) string {
		if slices.Contains([]string{"plus", "minus", "mul", "div", "rem"}, name) {
			return "arithmetic is done for each pod: rank by a fact as it is, or look the number up in an object"
		}
		return ""
	})
}

func findPodFunctions(m *ast.Module, _ *bundle.Bundle) []module.Problem {
	return eachPod(m, func(name string) string {
		if _, builtin := ast.BuiltinMap[name]; !builtin {
			return "the function " + name + " is called for each pod: write its conditions here, or look its answer up in an object"
		}
		return ""
	})
}

// eachPod reports calls in the rule rank that are made once for each pod.
func eachPod(m *ast.Module, wrong func(call string) string) (out []module.Problem) {
	for _, r := range m.Rules {
		if r.Head.Ref()[0].String() != "rank" || !strings.Contains(module.PackagePath(m), "rollout") {
			continue
		}
		s := &scan{module: m, call: func(name string, at *ast.Location, pods int) {
			if why := wrong(name); why != "" && pods > 0 {
				out = append(out, module.ProblemAt(at, "%s", why))
			}
		}}
		s.scanRule(r)
	}
	return out
}

func partialObjects(m *ast.Module, _ *bundle.Bundle) (out []module.Problem) {
	for _, r := range m.Rules {
		ref := r.Head.Ref()
		dynamic := slices.ContainsFunc(ref[1:], func(t *ast.Term) bool { _, constant := t.Value.(ast.String); return !constant })
		if r.Head.RuleKind() != ast.SingleValue || !dynamic {
			continue
		}
		most := 0
		s := &scan{module: m, loop: func(_ *ast.Location, pods int) { most = max(most, pods) }}
		s.scanRule(r)
		if most > 0 {
			out = append(out, module.ProblemAt(r.Location, "write one comprehension, %s := {pod.name: 1 | some pod in input.pods; ...}, instead of a key for each pod", ref[0]))
		}
	}
	return out
}

func findNestedPodLoops(m *ast.Module, _ *bundle.Bundle) (out []module.Problem) {
	for _, r := range m.Rules {
		s := &scan{module: m, loop: func(at *ast.Location, pods int) {
			if pods > 1 {
				out = append(out, module.ProblemAt(at, "pods are gone through for each pod: make a set or an object of one of them first, outside, and look it up"))
			}
		}}
		s.scanRule(r)
	}
	return out
}

// visitCalls reports every call in a module.
func visitCalls(m *ast.Module, tell func(name string, at *ast.Location)) {
	for _, r := range m.Rules {
		s := &scan{module: m, call: func(name string, at *ast.Location, _ int) { tell(name, at) }}
		s.scanRule(r)
	}
}

func pointNames(domain string) (out []string) {
	for _, p := range catalog.All() {
		if d, name, _ := strings.Cut(string(p.Name), "/"); d == domain {
			out = append(out, name)
		}
	}
	return out
}
