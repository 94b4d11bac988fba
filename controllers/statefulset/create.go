// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/claims"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// createPods creates the pods of some ordinals, the lowest first.
func (s *scaler) createPods(ctx context.Context, ordinals []int) error {
	acts := make([]func() error, len(ordinals))
	for i, n := range ordinals {
		acts[i] = func() error { return s.createPod(ctx, n) }
	}
	last := s.revisionOf(ordinals[len(ordinals)-1]).Name
	err := s.r.SlowStart(s.memory.proven == last, acts)
	s.memory.proven = ""
	if err == nil {
		s.memory.proven = last
	}
	return err
}

// revisionOf returns the revision that a new pod of an ordinal gets (ASTS-03): the current one
// as long as fewer pods than the partition have it.
func (s *scaler) revisionOf(ordinal int) *appsv1.ControllerRevision {
	h := s.t.History
	strategy := s.set.Spec.UpdateStrategy
	switch {
	case s.held[ordinal]:
		return h.Current
	case s.f.Strategy.Type == rollout.OnDelete:
		return h.Update
	case strategy.RollingUpdate == nil:
		if ordinal < s.ordinals.Start+int(s.set.Status.CurrentReplicas) {
			return h.Current
		}
	case s.f.Strategy.Ordered:
		if below := slices.Index(s.wanted, ordinal); below >= 0 && below < s.f.Strategy.Partition {
			return h.Current
		}
	case s.notUpdated(ordinal) < s.f.Strategy.Partition:
		return h.Current
	}
	return h.Update
}

// notUpdated counts the wanted pods of other ordinals that are not updated. Missing pods with
// lower ordinals count as well: they are created before, of the current revision.
func (s *scaler) notUpdated(ordinal int) (n int) {
	for _, i := range s.wanted {
		switch p := s.active[i]; {
		case i == ordinal:
		case p == nil && i < ordinal, p != nil && !s.t.HasRevision(p.Pod, s.t.UpdateRevision()):
			n++
		}
	}
	return n
}

func (s *scaler) createPod(ctx context.Context, ordinal int) error {
	rev := s.revisionOf(ordinal)
	pod, err := s.newPod(rev, ordinal)
	if err == nil && s.f.Strategy.Type == rollout.OnDelete { // no update would grow them
		err = s.growClaims(ctx, ordinal)
	}
	if err == nil {
		err = s.createClaims(ctx, ordinal, s.claimTemplates(rev))
	}
	if err == nil {
		if err = s.r.CreatePod(ctx, pod); err != nil {
			err = s.explainRefusal(pod, rev, err)
		}
	}
	if err != nil {
		s.r.RecordWarning(kruise.FailedCreateReason, fmt.Sprintf("create Pod %s in StatefulSet %s failed error: %v", podName(s.set, ordinal), s.set.Name, err))
		return &rollout.CreateError{Err: err}
	}
	s.r.ForgetReplaced(pod.Name)
	s.r.RecordCreated(pod)
	return nil
}

// newPod builds the pod of an ordinal from a revision's template.
func (s *scaler) newPod(rev *appsv1.ControllerRevision, ordinal int) (*corev1.Pod, error) {
	template, err := revision.DecodeTemplate(rev)
	if err != nil {
		return nil, err
	}
	name := podName(s.set, ordinal)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: s.set.Name + "-", Namespace: s.set.Namespace,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set, OwnerKind())},
		},
		Spec: template.Spec,
	}
	s.k.setIdentityLabels(pod, ordinal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.t.LabelValue(rev.Name)
	pod.Spec.Hostname, pod.Spec.Subdomain = name, s.set.Spec.ServiceName
	inplace.AddGate(pod, kruise.KruisePodReady)
	state := kruise.LifecycleStateNormal
	if l := s.set.Spec.Lifecycle; l != nil && l.PreNormal != nil && !lifecycle.AllHooked(l.PreNormal, pod) {
		state = kruise.LifecycleStatePreparingNormal
	}
	lifecycle.SetState(pod, state, s.f.Now)
	pod.Spec.Volumes = claims.PodVolumes(pod.Spec.Volumes, s.claimTemplates(rev), func(template string) string {
		return claimName(s.set, template, ordinal)
	})
	s.findLostVolumes(pod, rev, ordinal)
	return pod, nil
}
