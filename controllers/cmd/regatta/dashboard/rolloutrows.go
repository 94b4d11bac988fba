// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/explain"
)

// maxEvents is how many events of a workload the page shows, the latest ones.
const maxEvents = 100

// answerRow is what the managers say about the workload as a whole.
type answerRow struct {
	Type   string         `json:"type"`
	Answer explain.Answer `json:"answer"`
}

// commandsRow has commands to copy.
type commandsRow struct {
	Type     string    `json:"type"`
	Commands []command `json:"commands"`
}

// command is a command line. The browser has a text for each purpose.
type command struct {
	Purpose string `json:"purpose"`
	Line    string `json:"line"`
	// Blocked are reasons why the command refuses at the moment.
	Blocked []string `json:"blocked,omitempty"`
}

// eventRow is an event of the workload.
type eventRow struct {
	Type    string `json:"type"`
	At      int64  `json:"at"` // in milliseconds since 1970
	Warning bool   `json:"warning"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int    `json:"count"`
}

// goneRow says that the workload was deleted.
type goneRow struct {
	Type string `json:"type"`
}

func (s *rolloutSource) collectRows() []row {
	out := describeGroup(s.allWatchers())
	object := s.liveObject()
	if object == nil {
		if s.object.informer.HasSynced() {
			out = append(out, row{"gone", goneRow{"gone"}})
		}
		return out
	}
	head := newWorkloadRow(s.kind, object)
	head.Revision = s.newestRevision(object, head.Revision)
	out = append(out, row{"workload", head}, row{"commands", commandsRow{"commands", rolloutCommands(s.kind, head)}})
	reply, problems := s.lastAnswer()
	for i, err := range problems {
		out = append(out, newProblemRow(fmt.Sprint("answer/", i), err))
	}
	if reply != nil {
		out = append(out, row{"answer", answerRow{"answer", reply.Answer}})
	}
	all := newPodsOfRollout(head, reply)
	all.owners = s.ownerUIDs(object)
	for _, node := range listObjects[*metav1.PartialObjectMetadata](s.nodes) {
		all.zones[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	for _, r := range all.collectRows(listObjects[*corev1.Pod](s.pods)) {
		out = append(out, row{"pod/" + r.Namespace + "/" + r.Name, r})
	}
	return append(out, collectEvents(listObjects[*corev1.Event](s.events), s.kind.Group)...)
}

// collectEvents returns the latest events. An object of another group may have the same kind and name, and no
// field selector tells the two apart.
func collectEvents(all []*corev1.Event, group string) (out []row) {
	all = slices.DeleteFunc(all, func(e *corev1.Event) bool { return e.InvolvedObject.GroupVersionKind().Group != group })
	slices.SortFunc(all, func(a, b *corev1.Event) int { return rollout.TimeOfEvent(b).Compare(rollout.TimeOfEvent(a)) })
	for _, e := range all[:min(len(all), maxEvents)] {
		out = append(out, row{"event/" + e.Namespace + "/" + e.Name, eventRow{
			"event", rollout.TimeOfEvent(e).UnixMilli(), e.Type == corev1.EventTypeWarning, e.Reason, e.Message, max(int(e.Count), 1),
		}})
	}
	return out
}

// rolloutCommands are the commands that a user may want to run about a workload in its present phase.
func rolloutCommands(k edit.Kind, w workloadRow) []command {
	named := k.Names[0] + "/" + w.Name
	in := ""
	if w.Namespace != "" {
		in = " -n " + w.Namespace
	}
	out := []command{{Purpose: "status", Line: "regatta rollout status " + named + in}, {Purpose: "history", Line: "regatta rollout history " + named + in}}
	switch {
	case k.Paused == nil:
	case w.Phase == phasePaused:
		out = append(out, command{Purpose: "resume", Line: "regatta rollout resume " + named + in})
	default:
		out = append(out, command{Purpose: "pause", Line: "regatta rollout pause " + named + in})
	}
	out = append(out, command{Purpose: "undo", Line: "regatta rollout undo " + named + in + " --preview"})
	if w.Phase == phaseHeld {
		out = append(out, command{Purpose: "why", Line: "regatta why " + named + in})
	}
	return out
}
