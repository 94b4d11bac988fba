// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
)

// agentName is the name of the DaemonSet of the node agent.
const agentName = "kruise-daemon"

// FindAgentNamespace returns the namespace of the node agents. An environment variable of the manager names it if it
// is not the manager's own.
func FindAgentNamespace(manager *appsv1.Deployment, own string) string {
	return cmp.Or(findManagerEnv(manager, "DAEMON_NAMESPACE"), own)
}

// findManagerEnv returns the value of an environment variable of the manager, empty for none.
func findManagerEnv(manager *appsv1.Deployment, name string) string {
	for _, c := range manager.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			if c.Name == "manager" && e.Name == name {
				return e.Value
			}
		}
	}
	return ""
}

// findAgents reads the DaemonSet of the node agent; nil where there is none.
func (i *inspector) findAgents(ctx context.Context) *appsv1.DaemonSet {
	namespace := FindAgentNamespace(&i.manager, i.Namespace)
	found, object := &appsv1.DaemonSet{}, nameOf("DaemonSet", namespace, agentName)
	err := i.askServer(ctx, func(ctx context.Context) error {
		return i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: agentName}, found)
	})
	switch {
	case err == nil:
		return found
	case !apierrors.IsNotFound(err):
		i.addError("agents", object, "get", err)
		return nil
	}
	gates, err := i.gatesOf()
	if err != nil || gates.Enabled(features.KruiseDaemon) {
		i.addFinding(Finding{Blocks, "agents", object, "metadata.name", "it is not there, and the feature gate KruiseDaemon is on: nothing restarts in place or is pulled ahead", "helm upgrade " + i.Release + " charts/kruise, or --set featureGates=KruiseDaemon=false"})
		return nil
	}
	i.addFinding(Finding{Fine, "agents", object, "metadata.name", "there are no agents, as the feature gate KruiseDaemon is off", ""})
	return nil
}

// checkAgents checks whether each node that an agent should run on has an agent that is ready.
func (i *inspector) checkAgents(ctx context.Context, agents *appsv1.DaemonSet) {
	if agents == nil {
		i.checkNodes(ctx, nil)
		return
	}
	object, spec := nameOf("DaemonSet", agents.Namespace, agents.Name), &agents.Spec.Template.Spec
	ready := map[string]bool{} // by node, of the pods that exist
	pods := &corev1.PodList{}
	ok := i.listPages(ctx, "agents", "Pods of daemon", pods, func() {
		for n := range pods.Items {
			pod := &pods.Items[n]
			if pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" {
				ready[pod.Spec.NodeName] = ready[pod.Spec.NodeName] || availability.HasReadyCondition(pod)
			}
			i.addPod("agents", pod)
		}
	}, client.InNamespace(agents.Namespace), client.MatchingLabels{"control-plane": "daemon"})
	fits, err := nodefit.NewRequirements(spec, nodefit.WithTolerations(nodefit.DaemonTolerations(spec.HostNetwork)...))
	if err != nil {
		i.addFinding(Finding{Blocks, "agents", object, "spec.template.spec.affinity", err.Error(), "change daemon.affinity"})
		return
	}
	var without, unready, excluded []string
	running := 0
	ok = i.checkNodes(ctx, func(node *corev1.Node) {
		state, found := ready[node.Name]
		switch {
		case !fits.EvaluateNode(node).Start:
			excluded = append(excluded, node.Name)
		case !found:
			without = append(without, node.Name)
		case !state:
			unready = append(unready, node.Name)
		default:
			running++
		}
	}) && ok
	if ok {
		i.addAgents(ctx, agents.Namespace, running, without, unready, excluded)
	}
}

func (i *inspector) addAgents(ctx context.Context, namespace string, running int, without, unready, excluded []string) {
	object := nameOf("DaemonSet", namespace, agentName)
	slices.Sort(without)
	slices.Sort(unready)
	if len(without) > 0 {
		f := Finding{Warns, "agents", object, "nodes " + nameSome(without), fmt.Sprintf("%d nodes have no agent, so that nothing restarts in place or is pulled ahead there", len(without)), "kubectl -n " + namespace + " describe daemonset " + agentName}
		if why := i.findFailedCreate(ctx, namespace); why != "" {
			f.Message += "; " + why
		}
		i.addFinding(f)
	}
	if len(unready) > 0 {
		i.addFinding(Finding{Warns, "agents", object, "nodes " + nameSome(unready), fmt.Sprintf("the agents of %d nodes are not ready", len(unready)), "kubectl -n " + namespace + " get pods -l control-plane=daemon -o wide"})
	}
	if running == 0 && len(without)+len(unready) > 0 {
		i.addFinding(Finding{Blocks, "agents", object, "status.numberReady", "no agent is ready on any node", "kubectl -n " + namespace + " rollout status daemonset/" + agentName})
		return
	}
	message := fmt.Sprintf("%d nodes have an agent that is ready", running)
	if len(excluded) > 0 {
		message += fmt.Sprintf("; %d are not meant to, by its selector, affinity and tolerations", len(excluded))
	}
	i.addFinding(Finding{Fine, "agents", object, "status.numberReady", message, ""})
}

// findFailedCreate returns the message of an event about pods of the DaemonSet that cannot be created: a DaemonSet has no
// condition for that.
func (i *inspector) findFailedCreate(ctx context.Context, namespace string) string {
	events := &corev1.EventList{}
	err := i.askServer(ctx, func(ctx context.Context) error {
		return i.List(ctx, events, client.InNamespace(namespace), client.Limit(50),
			client.MatchingFields{"involvedObject.kind": "DaemonSet", "involvedObject.name": agentName, "reason": "FailedCreate"})
	})
	if err != nil || len(events.Items) == 0 {
		return "" // the finding stands without it
	}
	return events.Items[len(events.Items)-1].Message
}
