// SPDX-License-Identifier: Apache-2.0

package predownload

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// pullJobState is what a round has found out about the jobs of one workload.
type pullJobState struct {
	kind     Kind
	revision string
	// jobs pull the images of the revision, by name. It does not contain jobs that are gone: they
	// have ended, or were deleted.
	jobs map[string]*job
	// complete is true once jobs has all possible jobs, including those that another manager created.
	complete bool
}

type job struct {
	image string
	// seen is true once the cache has shown the job. If the cache does not show it
	// afterwards, the job is gone.
	seen bool
}

// setRevision forgets the jobs of other revisions.
func (a *pullJobState) setRevision(revision string) {
	if a.revision != revision {
		a.revision, a.jobs, a.complete = revision, nil, false
	}
}

func (a *pullJobState) addJob(name, image string) {
	if a.jobs == nil {
		a.jobs = map[string]*job{}
	}
	if a.jobs[name] == nil {
		a.jobs[name] = &job{image: image}
	}
}

// refreshJobs finds out which jobs still exist.
func (a *pullJobState) refreshJobs(ctx context.Context, r *rollout.Round, update *appsv1.ControllerRevision) error {
	if !a.complete {
		template, err := revision.DecodeTemplate(update)
		if err != nil {
			return fmt.Errorf("reading revision %s: %w", update.Name, err)
		}
		for i := range template.Spec.Containers {
			c := &template.Spec.Containers[i]
			a.addJob(jobName(update.Name, c.Name), c.Image)
		}
		a.complete = true
	}
	for name, j := range a.jobs {
		key := client.ObjectKey{Namespace: r.Workload.GetNamespace(), Name: name}
		err := r.CachedClient().Get(ctx, key, &kruise.ImagePullJob{}, client.UnsafeDisableDeepCopy)
		if err == nil {
			j.seen = true
			continue
		}
		if apierrors.IsNotFound(err) && !j.seen {
			err = r.LiveReader().Get(ctx, key, &kruise.ImagePullJob{})
		}
		switch {
		case apierrors.IsNotFound(err):
			delete(a.jobs, name)
		case err != nil:
			return fmt.Errorf("reading ImagePullJob %s: %w", key, err)
		}
	}
	return nil
}

// pendingPulls returns a function that returns which images of the jobs a node does not have. Nothing is pulled on nodes
// without a NodeImage, so there are none; a NodeImage that cannot be read counts as a pull that has not begun.
func (a *pullJobState) pendingPulls(ctx context.Context, c client.Reader) func(node string) []points.ImagePull {
	images := map[string]bool{}
	for _, j := range a.jobs {
		images[j.image] = true
	}
	known := map[string][]points.ImagePull{}
	return func(name string) []points.ImagePull {
		out, ok := known[name]
		if ok {
			return out
		}
		node := &kruise.NodeImage{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy)
		if !apierrors.IsNotFound(err) {
			for _, image := range slices.Sorted(maps.Keys(images)) {
				if phase := phaseOf(node, image); phase != kruise.ImagePhaseSucceeded {
					out = append(out, points.ImagePull{Image: image, Phase: string(phase)})
				}
			}
		}
		known[name] = out
		return out
	}
}

// phaseOf is the phase of an image on a node; the pull of an invalid image never begins.
func phaseOf(node *kruise.NodeImage, image string) kruise.ImagePullPhase {
	i, err := tags.ParseImage(image)
	if err != nil {
		return ""
	}
	return tags.PullPhase(node, i)
}
