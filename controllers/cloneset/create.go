// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/claims"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// idLength is the length of an instance id, with which the names of a pod and its claims end.
const idLength = 5

// createPods creates a pod for each id, the first of them from the current revision and
// the rest from the update revision (CS-05). It starts slowly, so that a template
// that cannot work costs one failed write and not a thousand. A template that worked
// the last time needs no slow start, which saves time when pods are recreated one after another.
func (s *scaler) createPods(ctx context.Context, ids []string, current int) error {
	acts := make([]func() error, 0, len(ids))
	last := ""
	for i, id := range ids {
		rev := s.t.History.Update
		if i < current {
			rev = s.t.History.Current
		}
		last = rev.Name
		acts = append(acts, func() error { return s.createPod(ctx, rev, id) })
	}
	err := s.r.SlowStart(s.memory.proven == last, acts)
	if err != nil {
		last = ""
	}
	s.memory.proven = last
	return err
}

// freeIDs returns ids for at most n of the missing pods: first ids of failed
// attempts, then ids of claims that no pod uses, so that the claims are reused, then
// new ids. The replacement of a terminating pod whose claims are kept waits until
// that pod has ended, and then takes its id: no other pod is created in its place.
func (s *scaler) freeIDs(missing, n int) []string {
	awaited := s.awaitedIDs()
	n = min(n, missing-len(awaited))
	used := map[string]bool{}
	for _, p := range s.allPods() {
		used[p.Labels[kruise.CloneSetInstanceIDKey]] = true
	}
	for _, id := range s.going { // a pod with such a claim would wait indefinitely
		used[id] = true
	}
	for _, name := range s.set.Spec.ScaleStrategy.PodsToDelete { // a pod of this name would be deleted at once
		used[strings.TrimPrefix(name, podName(s.set, ""))] = true
	}
	var ids []string
	for _, id := range s.memory.toTry() {
		if awaited[id] {
			continue
		}
		if used[id] { // the pod was created after all
			s.memory.recordAttempt(id, true)
		} else if len(ids) < n {
			used[id] = true
			ids = append(ids, id)
		}
	}
	for _, c := range s.memory.claims {
		if id := c.Labels[kruise.CloneSetInstanceIDKey]; id != "" && !used[id] && !s.memory.isForeign(id) && len(ids) < n {
			used[id] = true
			ids = append(ids, id)
		}
	}
	for _, c := range s.memory.claims {
		used[c.Labels[kruise.CloneSetInstanceIDKey]] = true
	}
	for len(ids) < n {
		if id := rand.String(idLength); !used[id] {
			used[id] = true
			ids = append(ids, id)
		}
	}
	for id := range awaited { // the first to be used when the pod has ended
		s.memory.recordAttempt(id, false)
	}
	return ids
}

func (s *scaler) createPod(ctx context.Context, rev *appsv1.ControllerRevision, id string) error {
	pod, err := s.newPod(rev, id)
	if err == nil {
		err = s.createClaims(ctx, pod, id, s.claimTemplates(rev))
	}
	if err == nil {
		err = s.r.CreatePod(ctx, pod)
	}
	var taken *rollout.TakenError
	ours := errors.As(err, &taken) && metav1.IsControlledBy(taken.By, s.set)
	if taken != nil && !ours { // a released pod, for instance: its id is not used again
		s.memory.markForeign(id)
	}
	s.memory.recordAttempt(id, err == nil || s.memory.isForeign(id))
	if ours { // the pod terminates; the name is tried again after its end
		s.r.RequeueAfter(time.Second)
		return nil
	}
	if err != nil {
		s.r.RecordWarning(kruise.FailedCreateReason, fmt.Sprintf("failed to create pod: %v", err))
		return &rollout.CreateError{Err: err}
	}
	if rev.Name == s.t.UpdateRevision() {
		s.r.ForgetReplaced("")
	}
	s.r.RecordCreated(pod)
	return nil
}

func podName(set *kruise.CloneSet, id string) string { return set.Name + "-" + id }

// newPod builds a pod from a revision's template.
func (s *scaler) newPod(rev *appsv1.ControllerRevision, id string) (*corev1.Pod, error) {
	template, err := revision.DecodeTemplate(rev)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(s.set, id), Namespace: s.set.Namespace,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set, OwnerKind())},
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[kruise.CloneSetInstanceIDKey] = id
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.t.LabelValue(rev.Name)
	pod.Labels[podTemplateHash] = revision.ShortHash(rev.Name)
	for _, gate := range []corev1.PodConditionType{kruise.InPlaceUpdateReady, kruise.KruisePodReady} {
		inplace.AddGate(pod, gate)
	}
	lifecycle.SetState(pod, kruise.LifecycleStatePreparingNormal, s.f.Now)
	pod.Spec.Volumes = claims.PodVolumes(pod.Spec.Volumes, s.claimTemplates(rev), func(template string) string {
		return claimName(s.set, template, id)
	})
	return pod, nil
}

// podTemplateHash is the label whose value is the short hash, whatever the feature gates are.
const podTemplateHash = "pod-template-hash"

// allPods are the pods that are active, finished or terminating.
func (s *scaler) allPods() []*corev1.Pod {
	out := slices.Clone(s.f.Gone)
	for _, p := range s.f.Pods {
		out = append(out, p.Pod)
	}
	return out
}
