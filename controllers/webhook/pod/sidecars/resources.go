// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/expression"
	"github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/facts"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// computeResources sets the resources of containers that have a resourcesPolicy (SS-08). The SidecarSets are copies.
func (s *step) computeResources(ctx context.Context, c *pod.Creation, subject decision.Subject, sets []injection.Set) error {
	var brought map[string]bool
	for i := range sets {
		for _, list := range [][]kruise.SidecarContainer{sets[i].Spec.InitContainers, sets[i].Spec.Containers} {
			for j := range list {
				if list[j].ResourcesPolicy == nil {
					continue
				}
				if brought == nil { // most SidecarSets compute nothing
					brought = broughtBy(sets)
				}
				in, err := resourcesInput(c, &sets[i], &list[j], brought)
				if err != nil {
					return err
				}
				out, _ := engine.Decide(ctx, s.Engine, points.ResourcesPoint(), subject, in)
				if err := refusalError(out.Refuse); err != nil {
					return err
				}
				list[j].Resources = corev1.ResourceRequirements{Limits: resourceList(out.Limits), Requests: resourceList(out.Requests)}
			}
		}
	}
	return nil
}

// broughtBy returns the names of containers that SidecarSets add, in a pod and in their own specs, where the two containers of
// a hot upgrade have one name.
func broughtBy(sets []injection.Set) map[string]bool {
	out := map[string]bool{}
	for i := range sets {
		for _, name := range slices.Concat(containersOf(sets[i].Spec), podmeta.ContainersOf(sets[i].Spec)) {
			out[name] = true
		}
	}
	return out
}

func resourceList(a points.Amounts) corev1.ResourceList {
	out := corev1.ResourceList{}
	if a.CPU != nil {
		out[corev1.ResourceCPU] = *resource.NewMilliQuantity(*a.CPU, resource.DecimalSI)
	}
	if a.Memory != nil {
		out[corev1.ResourceMemory] = *resource.NewQuantity(*a.Memory, resource.BinarySI)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func resourcesInput(c *pod.Creation, set *injection.Set, container *kruise.SidecarContainer, brought map[string]bool) (points.ResourcesInput, error) {
	policy := container.ResourcesPolicy
	in := points.ResourcesInput{
		Pod: facts.PodInput(c, nil), Set: set.Name, Container: container.Name,
		Mode: string(policy.TargetContainersMode), Pattern: policy.TargetContainersNameRegex, Targets: []string{},
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return in, fmt.Errorf("SidecarSet %s: container %s: resourcesPolicy.targetContainersNameRegex: %w", set.Name, container.Name, err)
	}
	var targets []*corev1.Container
	add := func(own *corev1.Container) {
		if !brought[own.Name] && pattern.MatchString(own.Name) {
			targets, in.Targets = append(targets, own), append(in.Targets, own.Name)
		}
	}
	for i := range c.Pod.Spec.InitContainers {
		if own := &c.Pod.Spec.InitContainers[i]; podmeta.StaysRunning(own) {
			add(own)
		}
	}
	for i := range c.Pod.Spec.Containers {
		add(&c.Pod.Spec.Containers[i])
	}
	sum := policy.TargetContainersMode == kruise.ResourcesPolicyModeSum
	if l := policy.ResourcesExpr.Limits; l != nil {
		in.Limits.CPU = evaluateAmount(l.CPU, corev1.ResourceCPU, combinedLimit(targets, corev1.ResourceCPU, sum))
		in.Limits.Memory = evaluateAmount(l.Memory, corev1.ResourceMemory, combinedLimit(targets, corev1.ResourceMemory, sum))
	}
	if r := policy.ResourcesExpr.Requests; r != nil {
		in.Requests.CPU = evaluateAmount(r.CPU, corev1.ResourceCPU, combinedRequest(targets, corev1.ResourceCPU, sum))
		in.Requests.Memory = evaluateAmount(r.Memory, corev1.ResourceMemory, combinedRequest(targets, corev1.ResourceMemory, sum))
	}
	return in, nil
}

// combinedLimit is the limit of all targets together; nil if one of them has none.
func combinedLimit(targets []*corev1.Container, name corev1.ResourceName, sum bool) *resource.Quantity {
	total := resource.Quantity{}
	for _, own := range targets {
		q, ok := own.Resources.Limits[name]
		if !ok {
			return nil
		}
		combineQuantity(&total, q, sum)
	}
	return &total
}

// combinedRequest is the request of all targets together. A missing request counts as 0.
func combinedRequest(targets []*corev1.Container, name corev1.ResourceName, sum bool) *resource.Quantity {
	total := resource.Quantity{}
	for _, own := range targets {
		combineQuantity(&total, own.Resources.Requests[name], sum)
	}
	return &total
}

func combineQuantity(total *resource.Quantity, q resource.Quantity, sum bool) {
	switch {
	case sum:
		total.Add(q)
	case q.Cmp(*total) > 0:
		*total = q.DeepCopy()
	}
}

// evaluateAmount evaluates an expression; nil if there is none. CPU is in thousandths of a core, and memory in bytes.
func evaluateAmount(text string, name corev1.ResourceName, of *resource.Quantity) *points.Amount {
	if text == "" {
		return nil
	}
	out := &points.Amount{Expression: text, Unlimited: of == nil}
	if of == nil {
		of = &resource.Quantity{}
	}
	parsed, err := expression.Parse(text, string(name))
	if err != nil {
		out.Fault = err.Error()
		return out
	}
	if out.Unlimited { // there is no limit to compute from
		return out
	}
	milli, err := parsed.Evaluate(*of)
	if err != nil {
		out.Fault = err.Error()
		return out
	}
	if name == corev1.ResourceMemory {
		milli = new(big.Int).Quo(milli, big.NewInt(1000))
	}
	if !milli.IsInt64() {
		out.Fault = "the result is more than any amount"
		return out
	}
	out.Value = milli.Int64()
	return out
}
