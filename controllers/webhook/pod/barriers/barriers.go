// SPDX-License-Identifier: Apache-2.0

// Package barriers prevents containers of new pods from starting before others (CLP-01): each container has an
// environment variable whose value is in a ConfigMap, and a kubelet starts no container whose environment it cannot read.
// Policies decide the order.
package barriers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/launchpriority"
)

// declares is true for pods that declare an order. Containers of SidecarSets declare one too: in namespaces with SidecarSets the
// API server sends all pods.
const declares = "'" + kruise.ContainerLaunchPriorityKey + "' in object.metadata.?annotations.orValue({}) || " +
	"object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == '" + kruise.ContainerLaunchPriorityEnv + "'))"

// New makes the step. With native, containers may become init containers that restart instead (CLP-03).
func New(e *engine.Engine, native bool) pod.MutatingStep {
	return pod.MutatingStep{
		Place: pod.LaunchPriority, Name: "ordering the start of containers",
		Match:  match.Created{Name: "barriers", Conditions: []admissionv1.MatchCondition{{Name: "declares-an-order", Expression: declares}}},
		Mutate: func(ctx context.Context, c *pod.Creation) (bool, error) { return mutatePod(ctx, e, c, native) },
	}
}

func mutatePod(ctx context.Context, e *engine.Engine, c *pod.Creation, native bool) (bool, error) {
	declaring := &pod.Creation{Pod: launchpriority.DeclaredPod(c.Pod), Namespace: c.Namespace, DryRun: c.DryRun}
	in := inputOf(declaring)
	in.NativeSidecars = native
	point, subject := points.OrderPoint(), decision.Subject{Kind: "Pod", Namespace: c.Namespace, Name: in.Name}
	if !declaresOrder(&in) && !e.ActiveSnapshot().IsPointExtended(point.Name, subject) {
		return false, nil
	}
	out, _ := engine.Decide(ctx, e, point, subject, in)
	if len(out.Refuse) > 0 {
		messages := make([]string, len(out.Refuse))
		for i, r := range out.Refuse {
			messages[i] = fmt.Sprintf("%s (%s)", r.Message, r.Rule)
		}
		return false, errors.New(strings.Join(messages, "; "))
	}
	if len(out.Priorities) == 0 {
		return false, nil
	}
	if declaring.Pod != c.Pod {
		*c.Pod = *declaring.Pod
	}
	if out.PermitsNative(in) {
		launchpriority.MakeNativeSidecars(c.Pod, out.EarlyContainers(in), out.Priorities)
		return true, nil
	}
	if c.Pod.Name == "" { // the ConfigMap is named after the pod
		c.Pod.Name = nameFor(c.Pod.GenerateName)
	}
	for i := range c.Pod.Spec.Containers {
		own := &c.Pod.Spec.Containers[i]
		own.Env = append(launchpriority.WithoutBarriers(own.Env), launchpriority.BarrierEnv(c.Pod.Name, out.Priorities[own.Name]))
	}
	return true, nil
}

// nameFor generates a name as the API server does. The API server generates names only after the webhooks.
func nameFor(prefix string) string {
	const random, longest = 5, 63
	return prefix[:min(len(prefix), longest-random)] + rand.String(random)
}

func declaresOrder(in *points.OrderInput) bool {
	return in.Annotation != "" || slices.ContainsFunc(in.Containers, func(c points.Container) bool { return c.Priority != nil || c.Fault != "" })
}
