// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// decideNodes asks the policies which nodes begin now, and which holds prevent others from it. Nodes
// that are denied the image are failed in the tally.
func (r *Reconciler) decideNodes(ctx context.Context, job *kruise.ImagePullJob, i tags.Image, t *tally) (begin []*candidate, holds []points.Hold) {
	if len(t.candidates) == 0 {
		return nil, nil
	}
	subject := facts.ObjectSubject(kruise.GroupVersion.Group, "ImagePullJob", job)
	facts := jobFacts(job, i)
	r.places.rankCandidates(ctx, subject, facts, t.candidates)
	var free []points.Candidate
	byName := map[string]*candidate{}
	for n := range t.candidates {
		c := &t.candidates[n]
		byName[c.Name] = c
		switch {
		case c.denied != nil:
			t.markFailed(c, c.denied)
		case c.held != nil:
			holds = append(holds, *c.held)
		default:
			free = append(free, c.Candidate)
		}
	}
	if t.Waiting == 0 {
		return nil, nil
	}
	parallelism := parallelismOf(job)
	in := points.ImagesInput{
		Now: r.Now().UnixNano(), Job: facts, Parallelism: parallelism, Free: max(min(parallelism-t.Pulling, t.Waiting), 0),
		Counts: t.Nodes, Groups: t.groups, Registry: t.registry,
	}
	out, _ := engine.Decide(ctx, r.Engine, points.ImagesPoint(), subject, in)
	if len(out.Denials) > 0 {
		for n := range t.candidates {
			if c := &t.candidates[n]; c.denied == nil {
				t.markFailed(c, &out.Denials[0])
			}
		}
		return nil, nil
	}
	names, held := out.NodesToPull(in, free)
	for _, name := range names {
		begin = append(begin, byName[name])
	}
	if held != nil {
		holds = append(out.Holds, holds...) //nolint:gocritic // the holds of all nodes come first
	}
	return begin, holds
}

func jobFacts(job *kruise.ImagePullJob, i tags.Image) points.Job {
	out := points.Job{
		Name: job.Name, Namespace: job.Namespace, Created: job.CreationTimestamp.UnixNano(), Labels: job.Labels, Annotations: job.Annotations,
		Image: i.Name, Tag: i.Tag, Always: job.Spec.ImagePullPolicy == kruise.PullAlways, Never: neverCompletes(job),
	}
	if owner := metav1.GetControllerOf(job); owner != nil {
		out.Owner = &points.Owner{Kind: owner.Kind, Name: owner.Name}
	}
	return out
}

func neverCompletes(job *kruise.ImagePullJob) bool {
	return job.Spec.CompletionPolicy.Type == kruise.NeverCompletionPolicyType
}

// parallelismOf returns on how many nodes a job pulls at once. Admission refuses percentages.
func parallelismOf(job *kruise.ImagePullJob) int {
	if job.Spec.Parallelism == nil {
		return 1
	}
	return job.Spec.Parallelism.IntValue()
}
