// SPDX-License-Identifier: Apache-2.0

// Package nodefit decides on which nodes the pods of a template may run (BJ-01, ADS-01),
// and binds pods to nodes. Its functions read nodes and do not change them.
package nodefit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Why a node does not fit.
const (
	NodeName     = "NodeName"
	NodeAffinity = "NodeAffinity"
	Tainted      = "Tainted"
	Insufficient = "InsufficientResources"
)

// Verdict is whether a node meets the requirements of a template.
type Verdict struct {
	// Start is whether a pod may start on the node.
	Start bool
	// Stay is whether a pod that runs on the node already may stay. If Start is true, so is Stay.
	Stay bool
	// Reason and Message say why a pod may not start; they are empty if it may.
	Reason, Message string
}

// Requirements are what the pods of a template require of their node.
type Requirements struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	requests    corev1.ResourceList
}

// Option changes Requirements.
type Option func(*Requirements, *corev1.PodSpec)

// WithTolerations adds tolerations to those of the template.
func WithTolerations(more ...corev1.Toleration) Option {
	return func(r *Requirements, _ *corev1.PodSpec) { r.tolerations = slices.Concat(r.tolerations, more) }
}

// WithRequests requires that the allocatable resources of a node are enough for one pod, whatever
// else runs there.
func WithRequests() Option {
	return func(r *Requirements, spec *corev1.PodSpec) { r.requests = requestsOf(spec) }
}

// NewRequirements reads the requirements of a template. The error names the field that cannot be read.
func NewRequirements(spec *corev1.PodSpec, opts ...Option) (*Requirements, error) {
	if required := requiredAffinity(spec.Affinity); required != nil {
		at := field.WithPath(field.NewPath("spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"))
		if _, err := nodeaffinity.NewNodeSelector(required, at); err != nil {
			return nil, fmt.Errorf("reading which nodes the pods ask for: %w", err)
		}
	}
	r := &Requirements{
		nodeName:    spec.NodeName,
		affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
		tolerations: spec.Tolerations,
	}
	for _, opt := range opts {
		opt(r, spec)
	}
	return r, nil
}

// EvaluateNode reports whether a pod may start on a node, and whether one that runs there may stay.
func (r *Requirements) EvaluateNode(node *corev1.Node) Verdict {
	if r.nodeName != "" && r.nodeName != node.Name {
		return Verdict{Reason: NodeName, Message: fmt.Sprintf("The template asks for node %s.", r.nodeName)}
	}
	// NewRequirements has checked the affinity already, so Match returns no error.
	if ok, err := r.affinity.Match(node); err != nil || !ok {
		return Verdict{Reason: NodeAffinity, Message: "The node does not match the nodeSelector or the required node affinity of the template."}
	}
	if taint, found := r.untoleratedTaint(node, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule); found {
		_, evicts := r.untoleratedTaint(node, corev1.TaintEffectNoExecute)
		return Verdict{Stay: !evicts, Reason: Tainted, Message: fmt.Sprintf("The template does not tolerate the taint %s of the node.", taint.ToString())}
	}
	if short := r.insufficientResources(node); len(short) > 0 {
		return Verdict{Stay: true, Reason: Insufficient, Message: fmt.Sprintf("The node can never allocate what a pod requests of %s.", strings.Join(short, ", "))}
	}
	return Verdict{Start: true, Stay: true}
}

// untoleratedTaint is the first taint of these effects that the template does not tolerate.
func (r *Requirements) untoleratedTaint(node *corev1.Node, effects ...corev1.TaintEffect) (corev1.Taint, bool) {
	return schedulingv1.FindMatchingUntoleratedTaint(klog.Background(), taintsOf(node), r.tolerations, func(t *corev1.Taint) bool {
		return slices.Contains(effects, t.Effect)
	}, true)
}

// taintsOf returns the taints of a node. A cordoned node has the taint that the
// control plane is going to give it.
func taintsOf(node *corev1.Node) []corev1.Taint {
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if !node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&cordoned) }) {
		return node.Spec.Taints
	}
	return append(slices.Clone(node.Spec.Taints), cordoned)
}

func requiredAffinity(a *corev1.Affinity) *corev1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
