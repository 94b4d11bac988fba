// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// ImagesInput asks how many nodes begin to pull an image now (IMG-03). It has numbers
// instead of nodes: a job may be about ten thousand of them. The order of the nodes is for
// node/rank.
type ImagesInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Job is what was asked for.
	Job Job `json:"job"`
	// Parallelism is how many nodes may pull at once for the job.
	Parallelism int `json:"parallelism"`
	// Free is how many more may begin now: the parallelism less those that pull, and no
	// more than wait.
	Free int `json:"free"`
	// Counts are the nodes of the job, by how far they are.
	Counts Nodes `json:"counts"`
	// Groups counts them by topology: dimension ("zone", "region"), value.
	Groups map[string]map[string]Nodes `json:"groups"`
	// Registry is where the image is.
	Registry Registry `json:"registry"`
}

// Job is an ImagePullJob.
type Job struct {
	// Name of the job.
	Name string `json:"name"`
	// Namespace of the job.
	Namespace string `json:"namespace"`
	// Created is in nanoseconds since 1970.
	Created int64 `json:"created"`
	// Labels of the job; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the job; there are none if it has none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Owner is the controller of the job, such as the workload whose update it prepares.
	Owner *Owner `json:"owner,omitempty"`
	// Image is the name of the image as users write it, without a tag: nginx.
	Image string `json:"image"`
	// Tag of the image, or its digest.
	Tag string `json:"tag"`
	// Always is true where nodes pull the image even if they have it.
	Always bool `json:"always"`
	// Never is true for a job that does not end.
	Never bool `json:"never"`
}

// Nodes counts nodes.
type Nodes struct {
	// Total is how many nodes the job is about.
	Total int `json:"total"`
	// Waiting is how many of them have not begun.
	Waiting int `json:"waiting"`
	// Pulling is how many pull the image.
	Pulling int `json:"pulling"`
	// Succeeded is how many have it.
	Succeeded int `json:"succeeded"`
	// Failed is how many have given up, or are denied it.
	Failed int `json:"failed"`
	// Busy is how many nodes pull any image now, for any job; of a group, all nodes there
	// count, whether the job is about them or not.
	Busy int `json:"busy"`
}

// Registry is where an image is.
type Registry struct {
	// Name is the host, such as docker.io.
	Name string `json:"name"`
	// Pulling is how many images of the registry are pulled now, over all nodes and jobs.
	Pulling int `json:"pulling"`
}

// ImagesOutput says how many nodes begin now. The clamp in Go lets no more begin than are
// free, and none that is held or denied, whatever it says.
type ImagesOutput struct {
	// Begin is how many nodes begin now.
	Begin int `json:"begin"`
	// Holds stop nodes from beginning for now. None means go.
	Holds []Hold `json:"holds"`
	// Denials are why no node begins for this job any more. Those that wait have failed.
	Denials []Denial `json:"denials"`
}

// ImagesPoint decides how many nodes begin to pull an image now. The manager asks it while
// nodes of an ImagePullJob wait: whenever one of them says how far it is, and every few
// seconds while a rule holds. Without an answer what runs is finished and nothing begins.
func ImagesPoint() decision.Point[ImagesInput, ImagesOutput] {
	return decision.Point[ImagesInput, ImagesOutput]{
		Name: "node/images", Budget: 100 * time.Millisecond, MaxResult: 20_000,
		Fallback: func(ImagesInput) ImagesOutput {
			return ImagesOutput{Holds: []Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide how many nodes pull this image, so no node begins.",
			}}}
		},
		Check: checkImages,
		Lean:  leanImages,
	}
}

func checkImages(_ ImagesInput, out ImagesOutput) error {
	if out.Begin < 0 {
		return fmt.Errorf("begin is %d, want 0 or more", out.Begin)
	}
	return checkTold(out.Holds, out.Denials)
}

// checkTold refuses holds and denials that do not say why.
func checkTold(holds []Hold, denials []Denial) error {
	for _, h := range holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("a hold of rule %s has no reason or no message", h.Rule)
		}
	}
	for _, d := range denials {
		if d.Reason == "" || d.Message == "" {
			return fmt.Errorf("a denial of rule %s has no reason or no message", d.Rule)
		}
	}
	return nil
}

// maxNodesToPull is how many nodes an answer lets begin at most.
func (o ImagesOutput) maxNodesToPull(in ImagesInput) int {
	if len(o.Denials) > 0 {
		return 0
	}
	n := min(o.Begin, in.Free)
	for _, h := range o.Holds {
		if len(h.Where) == 0 && h.Node == "" {
			n = min(n, h.allowedRoom())
		}
	}
	return max(n, 0)
}

// leanImages: fewer nodes that begin is stricter, and so are holds that reach more and a
// denial that another answer only held.
func leanImages(in ImagesInput, then, now ImagesOutput) decision.Strictness {
	return decision.CombineStrictness(
		decision.CombineStrictness(decision.FewerIsStricter(then.maxNodesToPull(in), now.maxNodesToPull(in)), decision.FewerIsStricter(-len(then.Denials), -len(now.Denials))),
		decision.StrictnessOf(!coversHolds(then.Holds, now.Holds), !coversHolds(now.Holds, then.Holds)))
}

// coversHolds reports whether some holds stop all that others do.
func coversHolds(holds, others []Hold) bool {
	return decision.CoversAll(holds, others, func(h, o Hold) bool {
		return h.allowedRoom() <= o.allowedRoom() && (h.Node == "" || h.Node == o.Node) && decision.IsSubset(h.Where, o.Where)
	})
}

// Candidate is a node that could begin to pull.
type Candidate struct {
	// Name of the node.
	Name string
	// Groups are where the node is: dimension ("zone", "region"), value.
	Groups map[string]string
}

// NodesToPull is which of some nodes begin, and what holds the first that does not: the clamp.
// The nodes come in the order in which they are to go, without those that node/rank holds
// or denies.
func (o ImagesOutput) NodesToPull(in ImagesInput, nodes []Candidate) (begin []string, held *Hold) {
	if len(o.Denials) > 0 {
		return nil, nil
	}
	rooms := make([]int, len(o.Holds))
	for i := range o.Holds {
		rooms[i] = o.Holds[i].allowedRoom()
	}
	most := min(o.Begin, in.Free)
	for _, node := range nodes {
		if len(begin) >= most && (held != nil || len(rooms) == 0) {
			break
		}
		mine, full := o.holdsOnNode(node, rooms)
		switch {
		case full != nil:
			if held == nil {
				held = full
			}
		case len(begin) < most:
			for _, i := range mine {
				rooms[i]--
			}
			begin = append(begin, node.Name)
		}
	}
	return begin, held
}

// holdsOnNode are the holds that a node is under, and the first of them without room.
func (o ImagesOutput) holdsOnNode(node Candidate, rooms []int) (mine []int, full *Hold) {
	for i := range o.Holds {
		if h := &o.Holds[i]; (h.Node == "" || h.Node == node.Name) && decision.IsSubset(h.Where, node.Groups) {
			mine = append(mine, i)
			if rooms[i] <= 0 && full == nil {
				full = h
			}
		}
	}
	return mine, full
}
