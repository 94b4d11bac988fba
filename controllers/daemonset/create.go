// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// mostRefusals is how many times a round starts slowly again after pods that cannot be created.
const mostRefusals = 8

// createPods creates the pods of some nodes. It starts slowly, so that a template that cannot work
// costs a few failed writes. A template that worked the last time needs no slow start. Nodes are independent:
// if the pod of one node is refused, the other nodes still get theirs.
func (s *scaler) createPods(ctx context.Context, nodes []string) error {
	name := s.revisionOf(nodes[len(nodes)-1]).Name
	proven := s.memory.proven == name
	s.memory.proven = ""
	var errs []error
	for len(nodes) > 0 && len(errs) < mostRefusals {
		tried, acts := make([]bool, len(nodes)), make([]func() error, len(nodes))
		for i, n := range nodes {
			acts[i] = func() error {
				tried[i] = true
				err := s.createPod(ctx, n, s.revisionOf(n))
				s.memory.countRefusal(n, err != nil)
				return err
			}
		}
		err := s.r.SlowStart(proven, acts)
		if err == nil {
			break // the next round creates the rest
		}
		errs, proven = append(errs, err), false
		var left []string
		for i, n := range nodes {
			if !tried[i] {
				left = append(left, n)
			}
		}
		nodes = left
	}
	if len(errs) == 0 {
		s.memory.proven = name
	}
	return errors.Join(errs...)
}

// createPod makes the pod of a node from a revision.
func (s *scaler) createPod(ctx context.Context, node string, rev *appsv1.ControllerRevision) error {
	var (
		pod   *corev1.Pod
		err   error
		taken = true
	)
	for try := 0; taken && try < mostNames; try++ {
		if pod, err = s.newPod(node, rev); err != nil {
			break
		}
		taken, err = s.createNamed(ctx, pod, node)
	}
	if err != nil {
		s.r.RecordWarning(kruise.FailedCreateReason, fmt.Sprintf("Error creating: %v", err))
		return &rollout.CreateError{Err: message.HideDrawnName(err, s.set.Name+"-")}
	}
	s.r.ForgetReplaced(node)
	s.r.RecordCreated(pod)
	return nil
}

// createNamed creates a pod under its name, and reports whether another pod has that name, so that
// another name has to be tried. If the answer is lost, the next attempt uses the same name,
// so that the node does not get two pods.
func (s *scaler) createNamed(ctx context.Context, pod *corev1.Pod, node string) (taken bool, err error) {
	name, hash := pod.Name, pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	again := s.memory.triedName(node) == name // a pod that was created then may be of an earlier revision
	err = s.r.CreatePod(ctx, pod)
	var by *rollout.TakenError
	switch {
	case errors.As(err, &by):
		s.memory.setTriedName(node, "")
		return true, err
	case err == nil && (nodefit.NodeOf(pod) != node || !again && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != hash):
		s.memory.setTriedName(node, "")
		return true, fmt.Errorf("creating pod %s: another pod of this DaemonSet has the name", name)
	case reconcile.IsIndeterminate(err):
		s.memory.setTriedName(node, name)
	default:
		s.memory.setTriedName(node, "")
	}
	return false, err
}

// Pods have names of the form that generateName gives.
const (
	idLength      = 5
	longestPrefix = 63 - idLength
	mostNames     = 5 // tried in a round
)

func (s *scaler) podName(node string) string {
	if name := s.memory.triedName(node); name != "" {
		return name
	}
	prefix := s.set.Name + "-"
	return prefix[:min(len(prefix), longestPrefix)] + rand.String(idLength)
}

// newPod makes the pod of a node from the template of a revision.
func (s *scaler) newPod(node string, rev *appsv1.ControllerRevision) (*corev1.Pod, error) {
	template, err := revision.DecodeTemplate(rev)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.podName(node), GenerateName: s.set.Name + "-", Namespace: s.set.Namespace,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set, OwnerKind())},
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = s.t.LabelValue(rev.Name)
	if s.t.generation != "" && rev.Name == s.t.UpdateRevision() {
		pod.Labels[templateGenerationLabel] = s.t.generation
	}
	addTolerations(&pod.Spec, nodefit.DaemonTolerations(pod.Spec.HostNetwork))
	if s.k.ByScheduler {
		nodefit.BindToNode(&pod.Spec, node)
	} else {
		pod.Spec.NodeName = node
	}
	if s.f.Strategy.Policy == string(kruise.InPlaceIfPossiblePodUpdatePolicyType) {
		inplace.AddGate(pod, kruise.InPlaceUpdateReady)
	}
	inplace.AddGate(pod, kruise.KruisePodReady)
	return pod, nil
}

// addTolerations adds tolerations, each in place of one that is the same but for how long it lasts.
func addTolerations(spec *corev1.PodSpec, more []corev1.Toleration) {
	for _, t := range more {
		at := slices.IndexFunc(spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) })
		if at < 0 {
			spec.Tolerations = append(spec.Tolerations, t)
			continue
		}
		spec.Tolerations[at] = t
	}
}
