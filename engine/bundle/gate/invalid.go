// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/module"
)

// complaint is an error that the built-in policies report about a user's rule that does not depend on
// a request, so that it is either always wrong or never.
type complaint struct {
	Package string `json:"package"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// invalidRulesPoint is the point of the built-in rule protection/invalid, whose elements are
// complaints. It is no decision point: no controller acts on it.
func invalidRulesPoint() decision.UntypedPoint {
	return decision.Point[protection.GuardsInput, []complaint]{
		Name: "protection/invalid", Budget: testTime,
		Fallback: func(protection.GuardsInput) []complaint { return nil },
	}.EraseTypes()
}

// errLateRules says that guards and settings were not evaluated in time. That may be due to other work of the machine.
var errLateRules = errors.New("guards and settings are not evaluated in time")

// findInvalidRules finds errors in guards and settings that types do not show: an invalid label, or a
// kind that is protected already. Its errors are module.Problems and errLateRules.
func (c *checking) findInvalidRules(ctx context.Context) error {
	subject := decision.Subject{Namespace: c.bundle.Namespace}
	if len(c.bundle.Canary) > 0 {
		subject.Namespace = c.bundle.Canary[0]
	}
	rules := c.guardAndSettingRules("protection")
	if c.bundle.Kind == bundle.Builtin || len(rules) == 0 || !c.snapshot.IsPointDefined(invalidRulesPoint().Name, subject) {
		return nil
	}
	on := protection.GuardsInput{Gates: protection.Gates{Deletion: true, CRDCascading: true, BudgetDelete: true, BudgetUpdate: true}}
	answer, rec := engine.DecideOn(ctx, c.engine, c.snapshot, invalidRulesPoint(), subject, on)
	if rec.Outcome == decision.TimedOut {
		return errLateRules
	}
	if rec.Outcome != decision.Decided {
		first := slices.Min(slices.Collect(maps.Keys(rules)))
		return module.Problems{module.ProblemAt(rules[first].Location, "guards and settings cannot be read (%s): %s", rec.Outcome, rec.Error)}
	}
	var out module.Problems
	for _, x := range answer.([]complaint) {
		if r := rules["extend.protection."+x.Package+"."+x.Rule]; r != nil {
			out = append(out, module.ProblemAt(r.Location, "%s: %s", x.Rule, x.Message))
		}
	}
	if len(out) > 0 {
		return out
	}
	return nil
}

// guardAndSettingRules returns the bundle's guards and settings of a domain, by path.
func (c *checking) guardAndSettingRules(domain string) map[string]*ast.Rule {
	out := map[string]*ast.Rule{}
	for _, file := range slices.Sorted(maps.Keys(c.bundle.Modules)) {
		m := c.bundle.Modules[file]
		path := module.PackagePath(m)
		if !strings.HasPrefix(path, "extend."+domain+".") {
			continue
		}
		for _, r := range m.Rules {
			name := r.Head.Ref()[0].String()
			if (name == "guard" || name == "settings") && out[path+"."+name] == nil {
				out[path+"."+name] = r
			}
		}
	}
	return out
}
