// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// Stuck is a pod whose update has begun and cannot be carried out, with the message of the kubelet or
// of the volume resizer. The pod waits until the template is changed.
type Stuck struct{ Pod, Message string }

// findStuck finds the pods whose nodes do not give them the resources that an update wrote, and
// those whose claims do not grow. It records an event for each, once for each message.
func (r *Round) findStuck(f *Facts, res Result) []Stuck {
	if _, ok := r.c.kind.(KindWithSharedPods); ok {
		return nil // the controllers of their owners report them
	}
	var out []Stuck
	told := map[types.UID]string{}
	note := func(p *facts.Pod, message, reason, event string) {
		out = append(out, Stuck{p.Name, message})
		told[p.UID] += message
		if !strings.Contains(r.memory.stuck[p.UID], message) {
			r.RecordWarning(reason, event+": "+OneLine(message))
		}
	}
	for _, p := range f.Pods {
		if g := f.claimGrowth(p.Pod); g.Trouble != "" {
			note(p, g.Trouble, kruise.FailedResizeReason, g.Growing)
		}
		if p.InPlaceDone || slices.Contains(res.Moved, p.Key()) {
			continue
		}
		if trouble := inplace.BatchTrouble(p.Pod); trouble != "" {
			note(p, trouble, kruise.FailedUpdatePodInPlaceReason, fmt.Sprintf("failed to update pod %s in-place(revision %v)", p.Name, f.Templates.PodRevision(p.Pod)))
		}
		if trouble := inplace.ResizeTrouble(p.Pod); trouble != nil {
			note(p, trouble.String(), kruise.FailedUpdatePodInPlaceReason, fmt.Sprintf("failed to update pod %s in-place(revision %v)", p.Name, f.Templates.PodRevision(p.Pod)))
		}
	}
	r.memory.stuck = told
	return out
}

// stuckError reports the first pod that is stuck, and how many more there are.
func stuckError(all []Stuck) error {
	first := fmt.Errorf("pod %s is not updated: %s", all[0].Pod, all[0].Message)
	if n := len(all) - 1; n > 0 {
		return fmt.Errorf("%w; and %d more", first, n)
	}
	return first
}
