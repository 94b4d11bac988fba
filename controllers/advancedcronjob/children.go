// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// OwnerKind is the kind in the owner reference of jobs. It is the older version, which is
// what users see on them.
func OwnerKind() schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind("AdvancedCronJob")
}

// kindOf is ACJ-01: the kind of the jobs.
func kindOf(job *kruise.AdvancedCronJob) kruise.TemplateKind {
	switch t := &job.Spec.Template; {
	case t.JobTemplate != nil:
		return kruise.JobTemplateKind
	case t.ImageListPullJobTemplate != nil:
		return kruise.ImageListPullJobTemplateKind
	case t.BroadcastJobTemplate != nil:
		return kruise.BroadcastJobTemplateKind
	}
	return ""
}

// Outcomes of a job that was started (ACJ-02).
const (
	active    = "active"
	succeeded = "Complete"
	failed    = "Failed"
)

// child is a job that was started.
type child struct {
	client.Object
	gvk     schema.GroupVersionKind
	outcome string
	started *metav1.Time
}

// scheduledTime is when the run of the job was due, zero if the job does not record it.
func (c child) scheduledTime() time.Time {
	t, err := time.Parse(time.RFC3339, c.GetAnnotations()[kruise.ScheduledAtKey])
	if err != nil {
		return time.Time{}
	}
	return t
}

// newChild reads the outcome of a job.
func newChild(o client.Object) child {
	c := child{Object: o, outcome: active}
	ended := func(is, want bool, outcome string) {
		if is && want {
			c.outcome = outcome
		}
	}
	switch o := o.(type) {
	case *batchv1.Job:
		c.gvk, c.started = batchv1.SchemeGroupVersion.WithKind("Job"), o.Status.StartTime
		for _, x := range o.Status.Conditions {
			ended(x.Status == corev1.ConditionTrue, x.Type == batchv1.JobComplete, succeeded)
			ended(x.Status == corev1.ConditionTrue, x.Type == batchv1.JobFailed, failed)
		}
	case *kruise.BroadcastJob:
		c.gvk, c.started = kruise.GroupVersion.WithKind("BroadcastJob"), o.Status.StartTime
		for _, x := range o.Status.Conditions {
			ended(x.Status == corev1.ConditionTrue, x.Type == kruise.BroadcastJobComplete, succeeded)
			ended(x.Status == corev1.ConditionTrue, x.Type == kruise.BroadcastJobFailed, failed)
		}
	case *kruise.ImageListPullJob:
		c.gvk, c.started = kruise.GroupVersion.WithKind("ImageListPullJob"), o.Status.StartTime
		ended(o.Status.CompletionTime != nil, o.Status.Succeeded == o.Status.Desired, succeeded)
		ended(o.Status.CompletionTime != nil, o.Status.Succeeded != o.Status.Desired, failed)
	}
	return c
}

// jobListFactories are the kinds of jobs.
func jobListFactories() map[kruise.TemplateKind]func() client.ObjectList {
	return map[kruise.TemplateKind]func() client.ObjectList{
		kruise.JobTemplateKind:              func() client.ObjectList { return &batchv1.JobList{} },
		kruise.BroadcastJobTemplateKind:     func() client.ObjectList { return &kruise.BroadcastJobList{} },
		kruise.ImageListPullJobTemplateKind: func() client.ObjectList { return &kruise.ImageListPullJobList{} },
	}
}

// listChildren returns the jobs that were started and still exist, ordered by when they were due.
func (r *Reconciler) listChildren(ctx context.Context, job *kruise.AdvancedCronJob) ([]child, error) {
	list, ok := jobListFactories()[kindOf(job)]
	if !ok {
		return nil, nil
	}
	items := list()
	if err := r.Client.List(ctx, items, client.InNamespace(job.Namespace), client.MatchingFields{rollout.OwnerIndex: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("listing the jobs of AdvancedCronJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	objects, err := meta.ExtractList(items)
	if err != nil {
		return nil, fmt.Errorf("listing the jobs of AdvancedCronJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	var out []child
	for _, o := range objects {
		if o, ok := o.(client.Object); ok && metav1.IsControlledBy(o, job) {
			out = append(out, newChild(o))
		}
	}
	// The cache may not show yet a job that was started a moment ago.
	for _, ref := range job.Status.Active {
		if slices.ContainsFunc(out, func(c child) bool { return c.GetUID() == ref.UID }) {
			continue
		}
		o, ok := newEmptyJob(ref.Kind)
		if !ok {
			continue
		}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: ref.Name}, o)
		switch {
		case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(o, job):
		case err != nil:
			return nil, fmt.Errorf("reading %s %s past the cache: %w", ref.Kind, ref.Name, err)
		default:
			out = append(out, newChild(o))
		}
	}
	slices.SortFunc(out, func(a, b child) int {
		return cmp.Or(a.scheduledTime().Compare(b.scheduledTime()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}

// newEmptyJob is an object to read a job of a kind into.
func newEmptyJob(kind string) (client.Object, bool) {
	switch kruise.TemplateKind(kind) {
	case kruise.JobTemplateKind:
		return &batchv1.Job{}, true
	case kruise.BroadcastJobTemplateKind:
		return &kruise.BroadcastJob{}, true
	case kruise.ImageListPullJobTemplateKind:
		return &kruise.ImageListPullJob{}, true
	}
	return nil, false
}

// childName is the name of the job of a run. Another attempt to start the run finds the job by it.
func childName(job *kruise.AdvancedCronJob, at time.Time) string {
	return job.Name + "-" + strconv.FormatInt(at.Unix(), 10)
}

// childOf is the job of a run.
func childOf(job *kruise.AdvancedCronJob, at time.Time) client.Object {
	meta := func(from metav1.ObjectMeta) metav1.ObjectMeta {
		annotations := maps.Clone(from.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[kruise.ScheduledAtKey] = at.UTC().Format(time.RFC3339)
		return metav1.ObjectMeta{
			Namespace: job.Namespace, Name: childName(job, at), Labels: maps.Clone(from.Labels), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, OwnerKind())},
		}
	}
	switch t := job.Spec.Template.DeepCopy(); kindOf(job) {
	case kruise.JobTemplateKind:
		return &batchv1.Job{ObjectMeta: meta(t.JobTemplate.ObjectMeta), Spec: t.JobTemplate.Spec}
	case kruise.ImageListPullJobTemplateKind:
		return &kruise.ImageListPullJob{ObjectMeta: meta(t.ImageListPullJobTemplate.ObjectMeta), Spec: t.ImageListPullJobTemplate.Spec}
	case kruise.BroadcastJobTemplateKind:
		return &kruise.BroadcastJob{ObjectMeta: meta(t.BroadcastJobTemplate.ObjectMeta), Spec: t.BroadcastJobTemplate.Spec}
	}
	return nil
}
