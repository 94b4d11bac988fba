// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/scaffold"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Not .rego: what reads the folder of the policies as a bundle would compile them together, and they have one package.
//
//go:embed extensions
var extensions embed.FS

// extensionPolicy is a policy that extends a point by a rule: what regatta policy new
// makes, where that reads the facts of the point.
func extensionPolicy(point decision.Name, x bundle.Extension) (string, error) {
	text, err := extensions.ReadFile(path.Join("extensions", string(point)+"-"+x.Rule+".rego.txt"))
	if err == nil {
		return string(text), nil
	}
	rule := x.Rule
	switch {
	case rule == "settings" && point == "protection/guards":
		return "package extend.protection.my_policy\n\nsettings := {\"kinds\": {\"cronjobs.batch\": {\"cascading\": \"\"}}}\n", nil
	case rule == "settings" && point.Domain() == "protection":
		return "package extend.protection.my_policy\n\nsettings := {\"breakGlass\": {\"groups\": [\"example:on-call\"]}}\n", nil
	case rule == "settings" && x.Domain == "rollout":
		return "package extend.rollout.my_policy\n\nsettings := {\"readinessGate\": \"WhereServed\"}\n", nil
	case rule == "settings" && x.Domain == "injection":
		return "package extend.injection.my_policy\n\nsettings := {\"first\": [\"mesh\"]}\n", nil
	case rule == "deny" && point == "protection/deletion":
		rule = "guard" // that one is about volume claims, and the one of deny about pods
	}
	files, err := scaffold.New("my-policy", scaffold.Kind{Domain: x.Domain, Rule: rule})
	if err != nil {
		return "", fmt.Errorf("showing how to extend %s: %w", point, err)
	}
	return files["my-policy.rego"], nil
}

//go:embed examples
var overrides embed.FS

// overridePolicy returns a policy that replaces the decision of a point.
func overridePolicy(point decision.Name) (string, error) {
	text, err := overrides.ReadFile(path.Join("examples", string(point)+".rego"))
	if err != nil {
		return "", fmt.Errorf("showing how to replace %s: %w", point, err)
	}
	return string(text), nil
}

// fencedBlock is text as a block of Markdown.
func fencedBlock(language, text string) string {
	return "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
}
