// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
)

// checkAfter checks whether an installation works. An object that cannot be read is a finding; the checks that do not need it run all
// the same.
func (i *inspector) checkAfter(ctx context.Context) {
	found := i.checkManager(ctx)
	agents := i.findAgents(ctx)
	i.checkVersions(found, agents)
	i.checkLease(ctx)
	i.checkQuotas(ctx)
	certificate := i.findServing(ctx)
	i.checkCRDs(ctx, certificate)
	i.checkWebhooks(ctx, certificate)
	i.checkAPIService(ctx)
	i.checkGates(ctx, found)
	i.checkBundles(ctx)
	i.checkAgents(ctx, agents)
}

func (i *inspector) managerObject() string {
	return nameOf("Deployment", i.Namespace, preflight.ManagerDeployment)
}

// checkManager checks whether the manager runs. It returns false if the Deployment cannot be read.
func (i *inspector) checkManager(ctx context.Context) bool {
	object := i.managerObject()
	err := i.askServer(ctx, func(ctx context.Context) error {
		return i.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: preflight.ManagerDeployment}, &i.manager)
	})
	switch {
	case apierrors.IsNotFound(err):
		i.addFinding(Finding{Blocks, "manager", object, "metadata.name", "it is not there", "helm upgrade --install " + i.Release + " charts/kruise, or name its namespace with --manager-namespace"})
		return false
	case err != nil:
		i.addError("manager", object, "get", err)
		return false
	case !isOfRegatta(&i.manager):
		i.addFinding(Finding{Blocks, "manager", object, "metadata.labels", "it is not of Regatta's chart", "regatta preflight, which says what a change over from OpenKruise makes different"})
	}
	i.addReplicas(object)
	for _, c := range i.manager.Status.Conditions {
		failed := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
		stuck := c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
		if failed || stuck {
			i.addFinding(Finding{Blocks, "manager", object, "status.conditions " + string(c.Type), c.Reason + ": " + c.Message, "kubectl -n " + i.Namespace + " describe replicaset -l control-plane=controller-manager"})
		}
	}
	i.checkPods(ctx, "manager", "controller-manager")
	return true
}

// addReplicas reports whether enough managers are available.
func (i *inspector) addReplicas(object string) {
	wanted := int32(1)
	if r := i.manager.Spec.Replicas; r != nil {
		wanted = *r
	}
	available := i.manager.Status.AvailableReplicas
	f := Finding{Fine, "manager", object, "status.availableReplicas", fmt.Sprintf("%d of %d managers are available", available, wanted), ""}
	switch {
	case wanted == 0:
		f.Field, f.Message = "spec.replicas", "it is 0: a manager runs outside of the cluster, or none does; the lease and the webhooks say which"
	case available == 0:
		f.Status, f.Fix = Blocks, "kubectl -n "+i.Namespace+" rollout status deployment/"+preflight.ManagerDeployment
	case available < wanted || i.manager.Status.ObservedGeneration < i.manager.Generation:
		f.Status, f.Fix = Warns, "kubectl -n "+i.Namespace+" rollout status deployment/"+preflight.ManagerDeployment
	}
	i.addFinding(f)
}

// checkPods says why containers of pods do not run.
func (i *inspector) checkPods(ctx context.Context, check, plane string) {
	pods := &corev1.PodList{}
	i.listPages(ctx, check, "Pods of "+plane, pods, func() {
		for n := range pods.Items {
			i.addPod(check, &pods.Items[n])
		}
	}, client.InNamespace(i.Namespace), client.MatchingLabels{"control-plane": plane})
}

// manyRestarts is how often a container may have restarted before that is a finding.
const manyRestarts = 3

func (i *inspector) addPod(check string, pod *corev1.Pod) {
	object := nameOf("Pod", pod.Namespace, pod.Name)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			i.addFinding(Finding{Warns, check, object, "status.conditions PodScheduled", c.Message, "kubectl -n " + pod.Namespace + " describe pod " + pod.Name})
		}
	}
	for _, s := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		field := "status.containerStatuses " + s.Name
		switch w, ended := s.State.Waiting, s.LastTerminationState.Terminated; {
		case w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
			fix := "kubectl -n " + pod.Namespace + " describe pod " + pod.Name
			if w.Reason == "CrashLoopBackOff" {
				fix = "kubectl -n " + pod.Namespace + " logs " + pod.Name + " -c " + s.Name + " --previous"
			}
			i.addFinding(Finding{Warns, check, object, field, "it waits: " + w.Reason + " " + w.Message, fix})
		case s.RestartCount > manyRestarts && ended != nil:
			i.addFinding(Finding{Warns, check, object, field, fmt.Sprintf("it restarted %d times, last for %s with exit code %d", s.RestartCount, ended.Reason, ended.ExitCode),
				"kubectl -n " + pod.Namespace + " logs " + pod.Name + " -c " + s.Name + " --previous"})
		}
	}
}

// checkVersions compares the versions of the manager, the agents and this program.
func (i *inspector) checkVersions(found bool, agents *appsv1.DaemonSet) {
	if !found {
		return
	}
	const label = "app.kubernetes.io/version"
	i.report.Manager = i.manager.Labels[label]
	manager, client := strings.TrimPrefix(i.report.Manager, "v"), strings.TrimPrefix(i.Program.Regatta, "v")
	f := Finding{Fine, "versions", i.managerObject(), "metadata.labels " + label, "the chart is of version " + manager + ", and so is this program", ""}
	switch {
	case manager == "":
		f.Status, f.Message = Unknown, "the chart does not say of which version it is"
	case client == "" || strings.ContainsAny(client, "()+"):
		f.Message = "the chart is of version " + manager + "; this program is a build of its own (" + i.Program.Regatta + "), which is not compared"
	case client != manager:
		f.Status, f.Message, f.Fix = Warns, "the chart is of version "+manager+", and this program is "+client, "install regatta "+manager+", or helm upgrade "+i.Release+" to "+client
	}
	i.addFinding(f)
	image := imageOf(&i.manager.Spec.Template.Spec, "manager")
	if agents == nil || image == "" {
		return
	}
	f = Finding{Fine, "versions", nameOf("DaemonSet", agents.Namespace, agents.Name), "spec.template.spec.containers image", "agents and managers run " + image, ""}
	if of := imageOf(&agents.Spec.Template.Spec, "daemon"); of != image {
		f.Status, f.Message, f.Fix = Warns, "agents run "+of+", and managers "+image, "helm upgrade "+i.Release+" with one image for both, unless it is meant so"
	}
	i.addFinding(f)
}

func imageOf(spec *corev1.PodSpec, container string) string {
	for _, c := range spec.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// Names and defaults of the manager's flags for its lease.
const (
	leaseName     = "kruise-manager"
	leaseGrace    = 60 * time.Second // added to the lease's duration: clocks differ
	leaseLookTime = 5 * time.Second
	leaseLooks    = 4
)

// checkLease checks whether a manager leads. A lease that looks expired is read again, since the clocks of this machine and of the
// manager may differ: a lease that was renewed meanwhile is held.
func (i *inspector) checkLease(ctx context.Context) {
	name, namespace := leaseName, i.Namespace
	flags := preflight.ManagerFlags(&i.manager)
	if v := flags["leader-election-id"]; v != "" {
		name = v
	}
	if v := flags["leader-election-namespace"]; v != "" {
		namespace = v
	}
	object, fix := nameOf("Lease", namespace, name), "kubectl -n "+i.Namespace+" logs deployment/"+preflight.ManagerDeployment
	lease, ok := i.findLease(ctx, object, fix, namespace, name)
	if !ok {
		return
	}
	holder, age := *lease.Spec.HolderIdentity, i.now().Sub(lease.Spec.RenewTime.Time)
	f := Finding{Fine, "manager", object, "spec.renewTime", holder + " leads", ""}
	if i.looksRenewed(lease) {
		i.addFinding(f)
		return
	}
	i.pause(ctx, leaseLookTime)
	again, ok := i.findLease(ctx, object, fix, namespace, name)
	switch {
	case !ok:
		return
	case again.Spec.RenewTime.Equal(lease.Spec.RenewTime):
		f.Status, f.Message, f.Fix = Blocks, fmt.Sprintf("no manager leads: %s renewed it %s ago, and not since", holder, age.Round(time.Second)), fix
	case i.looksRenewed(again): // by a manager that took it over
		f.Message = *again.Spec.HolderIdentity + " leads"
	default:
		f.Status, f.Message, f.Fix = Warns, fmt.Sprintf("%s leads, but its clock and that of this machine differ by %s", *again.Spec.HolderIdentity, age.Abs().Round(time.Second)), "set the clocks"
	}
	i.addFinding(f)
}

// looksRenewed reports whether a lease was renewed in time by the clock of this machine.
func (i *inspector) looksRenewed(lease *coordinationv1.Lease) bool {
	limit := leaseGrace
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		limit += time.Duration(*s) * time.Second
	}
	age := i.now().Sub(lease.Spec.RenewTime.Time)
	return -leaseGrace <= age && age <= limit
}

// findLease reads a lease that a manager holds or held. A lease that no manager holds is read again for a while: during an upgrade
// the old leader releases the lease when it ends, and the next manager acquires or creates it at its next try.
func (i *inspector) findLease(ctx context.Context, object, fix, namespace, name string) (*coordinationv1.Lease, bool) {
	for look := 1; ; look++ {
		lease := &coordinationv1.Lease{}
		err := i.askServer(ctx, func(ctx context.Context) error {
			return i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, lease)
		})
		if err != nil && !apierrors.IsNotFound(err) {
			i.addError("manager", object, "get", err)
			return nil, false
		}
		if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.RenewTime != nil {
			return lease, true
		}
		if look < leaseLooks && i.mayHaveManager() && ctx.Err() == nil {
			i.pause(ctx, leaseLookTime)
			continue
		}
		f := Finding{Blocks, "manager", object, "spec.holderIdentity", "no manager leads", fix}
		if err != nil {
			f.Field, f.Message = "metadata.name", "no manager has led yet"
		}
		i.addFinding(f)
		return nil, false
	}
}

// mayHaveManager reports whether a manager may run: a replica is available, or managers run outside the cluster.
func (i *inspector) mayHaveManager() bool {
	wanted := i.manager.Spec.Replicas
	return i.manager.Name != "" && (i.manager.Status.AvailableReplicas > 0 || wanted != nil && *wanted == 0)
}

// checkQuotas reports which quotas of the namespaces of managers and agents are used up: on some clusters pods of critical priority
// classes need a quota.
func (i *inspector) checkQuotas(ctx context.Context) {
	namespaces := []string{i.Namespace}
	if agents := FindAgentNamespace(&i.manager, i.Namespace); agents != i.Namespace {
		namespaces = append(namespaces, agents)
	}
	for _, namespace := range namespaces {
		i.checkQuotasOf(ctx, namespace)
	}
}

func (i *inspector) checkQuotasOf(ctx context.Context, namespace string) {
	quotas, object := &corev1.ResourceQuotaList{}, nameOf("ResourceQuotas", "", namespace)
	full, all := 0, 0
	ok := i.listPages(ctx, "quotas", object, quotas, func() {
		for n := range quotas.Items {
			q := &quotas.Items[n]
			all++
			for name, hard := range q.Status.Hard {
				if used := q.Status.Used[name]; used.Cmp(hard) >= 0 && (!hard.IsZero() || !used.IsZero()) {
					full++
					i.addFinding(Finding{Warns, "quotas", nameOf("ResourceQuota", q.Namespace, q.Name), "status.used " + string(name), fmt.Sprintf("%s of %s are used, so that an update may not make new pods", used.String(), hard.String()),
						"kubectl -n " + q.Namespace + " edit resourcequota " + q.Name})
				}
			}
		}
	}, client.InNamespace(namespace))
	if ok && full == 0 {
		i.addFinding(Finding{Fine, "quotas", object, "status.used", fmt.Sprintf("none of %d is used up", all), ""})
	}
}
