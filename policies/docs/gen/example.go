// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
)

// shownCases names the case of each point that its page shows.
func shownCases() map[decision.Name]string {
	return map[decision.Name]string{
		"rollout/change":         "an image is replaced in place",
		"rollout/plan":           "a hold may name its rule, the groups it is for and when it may change",
		"rollout/rank":           "a package that ranks adds one number to the lead of each pod",
		"rollout/rows":           "the candidates that a bundle names go in its order, and the others are held",
		"rollout/scale":          "victims are compared by what is lost with them, then by how young they are",
		"protection/budget":      "a budget that is used up keeps the pod, with its numbers and what to do",
		"protection/deletion":    "a Deployment labelled Cascading stays while it wants replicas",
		"rollout/predownload":    "images are pulled on the nodes of old pods ahead of an update in place",
		"node/restarts":          "a budget that is used up can hold",
		"node/images":            "a hold may leave room for some nodes of a zone",
		"node/rank":              "a package that ranks adds one number to the key of each node",
		"node/markers":           "a result is a condition, and the labels and annotations of its policy",
		"node/termination":       "a sidecar ends when the main containers have",
		"injection/liveness":     "the annotation has the node agent run all liveness probes",
		"protection/guards":      "a guard of a user is passed on with its package",
		"injection/sidecars":     "a rule leaves a SidecarSet out, and says why",
		"launchpriority/order":   "each container starts after the one before it",
		"injection/resources":    "what the expressions give, but no limit where one of the containers has none",
		"placement/distribution": "a rule keeps copies out of a namespace, and says why",
		"rollout/run":            "a hold of a user leaves a run out",
		"placement/allocation":   "a rule never lets more than half into spot",
		"placement/persistent":   "a denial has the pod come back anywhere",
		"placement/ephemeral":    "a denial takes a pod out of the job",
		"placement/subset":       "the next one gets it when the first is full",
		"placement/broadcast":    "a rank puts nodes first, the lower the earlier",
	}
}

// example is a case as it was decided.
type example struct {
	cases.Result
	bundles map[string]string // that were active, as the case has them
}

// decideExamples decides the cases that are shown.
func decideExamples(e *engine.Engine, policies fs.FS) (map[decision.Name]example, error) {
	files, err := cases.Read(policies)
	if err != nil {
		return nil, err
	}
	out := map[decision.Name]example{}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "examples/") {
			continue
		}
		var wanted []cases.Case
		for _, c := range f.Cases {
			if shownCases()[c.Point] == c.Name {
				wanted = append(wanted, c)
			}
		}
		f.Cases = wanted
		for i, r := range cases.RunFile(context.Background(), e, nil, f) {
			if !r.HasPassed() {
				return nil, fmt.Errorf("deciding the case %q of %s: %s", r.Name, r.File, strings.Join(r.Problems, "; "))
			}
			out[r.Point] = example{r, wanted[i].Bundles}
		}
	}
	for point, name := range shownCases() {
		if _, ok := out[point]; !ok {
			return nil, fmt.Errorf("there is no case %q of %s", name, point)
		}
	}
	return out, nil
}

// encodeDocument is a value as policies see it, which has no null.
func encodeDocument(e *engine.Engine, v any) (string, error) {
	encoded, err := e.Codec().Encode(v)
	if err != nil {
		return "", fmt.Errorf("writing an example: %w", err)
	}
	plain, err := ast.JSON(encoded)
	if err != nil {
		return "", fmt.Errorf("writing an example: %w", err)
	}
	text, err := yaml.Marshal(plain)
	if err != nil {
		return "", fmt.Errorf("writing an example: %w", err)
	}
	return string(text), nil
}
