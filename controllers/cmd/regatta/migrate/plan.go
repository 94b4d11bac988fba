// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"
)

// plan is what a migration does.
type plan struct {
	source, target workload
	// exists is true if the target is there already, and converted if it is to get the template of the source.
	exists, converted bool
	// resumed is true if an earlier run of the command began the migration.
	resumed bool
	// moved is true if there is nothing to do, since the target has the pods already.
	moved bool
	// total is how many pods there are to be, and step how many more may exist meanwhile.
	total, step int
	// label tells the pods of the two apart.
	label string
	references
	lost         []string
	deleteSource bool

	// record is that of this run, and scaledTo the replicas that it last gave the source.
	record   record
	scaledTo int
}

// String describes the plan to people, a line for each thing that the migration does.
func (p *plan) String() string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	verb := "Move"
	if p.resumed {
		verb = "Go on to move"
	}
	line("%s %s from %s to %s in namespace %s:", verb, countPods(p.total), p.source, p.target, p.source.object.GetNamespace())
	switch {
	case !p.converted:
	case p.exists:
		line("  give %s, which has no pods, the template of %s; it keeps its own strategy", p.target, p.source)
	default:
		line("  create %s with the template of %s", p.target, p.source)
	}
	for i := range p.budgets {
		if !p.protected {
			line("  create PodUnavailableBudget %s like %s, for the pods of %s", twinName(&p.budgets[i], p.target), p.budgets[i].Name, p.target)
		}
	}
	for _, hpa := range p.autoscalers {
		line("  pause HorizontalPodAutoscaler %s, so that it does not change the replicas meanwhile", hpa.Name)
	}
	line("  create up to %s at a time, wait until they are available, then delete as many of %s;", countPods(p.step), p.source)
	line("    %s available at any time, and at most %d exist besides those that terminate", stayOrStays(p.total), p.total+p.step)
	for _, hpa := range p.autoscalers {
		line("  have HorizontalPodAutoscaler %s scale %s", hpa.Name, p.target)
	}
	if p.deleteSource {
		line("  delete %s", p.source)
	} else {
		line("  leave %s with 0 pods, for the way back: regatta migrate %s", p.source, p.target.commandArgument())
	}
	if len(p.selecting) > 0 {
		line("These select the pods of both: %s.", strings.Join(p.selecting, ", "))
	}
	if len(p.lost) > 0 {
		line("A %s has no such fields: %s.", p.target.kind, strings.Join(p.lost, ", "))
	}
	return out.String()
}

func countPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func stayOrStays(n int) string {
	if n == 1 {
		return "1 pod stays"
	}
	return fmt.Sprintf("%d pods stay", n)
}
