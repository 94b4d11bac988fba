// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkAdmission creates each object as a dry run, and the objects that controllers create from it: what admission refuses in a dry run, it
// refuses later too. If the namespace does not exist yet, the dry runs are in namespace default, which has other labels.
func (i *inspector) checkAdmission(ctx context.Context, asked []plannedObject, in space) {
	results := make([]bool, len(asked))
	inParallel(len(asked), func(k int) { results[k] = i.tryCreate(ctx, asked[k], in) })
	fine := len(slices.DeleteFunc(results, func(ok bool) bool { return !ok }))
	where := ""
	if !in.usable {
		where = "; as " + i.Namespace + " is not there yet, those in it were asked about in namespace default"
	}
	if fine > 0 {
		i.addFinding(Finding{Fine, "admission", "dry run", "create", fmt.Sprintf("%d of %d objects and pods of the installation would be let in%s", fine, len(asked), where), ""})
	}
}

// madeOf returns the ReplicaSets and pods that controllers create from templates. The service accounts of the pods and the quota of their
// priority class may not exist yet.
func (i *inspector) madeOf(planned []plannedObject) []plannedObject {
	ofPods, err := i.RESTMapper().RESTMapping(schema.GroupKind{Kind: "Pod"}, "v1")
	if err != nil {
		i.addError("admission", "Pod", "discover", err)
		return nil
	}
	ofSets, err := i.RESTMapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, "v1")
	if err != nil {
		i.addError("admission", "ReplicaSet", "discover", err)
		return nil
	}
	var out []plannedObject
	for _, p := range planned {
		o, ok := p.Object.(*unstructured.Unstructured)
		kind := p.mapping.GroupVersionKind.Kind
		if !ok || kind != "Deployment" && kind != "DaemonSet" {
			continue
		}
		template, _, _ := unstructured.NestedMap(o.Object, "spec", "template") // what is none is refused with its object
		if kind == "Deployment" {
			selector, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
			out = append(out, madeFrom(o, ofSets, map[string]any{"replicas": int64(0), "selector": selector, "template": template}))
		}
		spec, _, _ := unstructured.NestedMap(template, "spec")
		for _, field := range []string{"serviceAccountName", "serviceAccount", "priorityClassName"} {
			delete(spec, field)
		}
		out = append(out, madeFrom(o, ofPods, spec))
	}
	return out
}

// madeFrom is an object with the labels and annotations of a template.
func madeFrom(owner *unstructured.Unstructured, mapping *meta.RESTMapping, spec map[string]any) plannedObject {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(mapping.GroupVersionKind)
	made.SetName(owner.GetName() + "-check")
	made.SetNamespace(owner.GetNamespace())
	labels, _, _ := unstructured.NestedStringMap(owner.Object, "spec", "template", "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(owner.Object, "spec", "template", "metadata", "annotations")
	made.SetLabels(labels)
	made.SetAnnotations(annotations)
	return plannedObject{made, mapping}
}

// tryCreate creates an object as a dry run and reports whether it is admitted.
func (i *inspector) tryCreate(ctx context.Context, p plannedObject, in space) bool {
	o, err := i.dryRun(ctx, p, p.GetNamespace())
	fallback := p.GetNamespace() != "" && (apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces ") || p.GetNamespace() == i.Namespace && in.ending)
	if fallback {
		o, err = i.dryRun(ctx, p, metav1.NamespaceDefault)
	}
	switch {
	case err == nil:
		i.addChanged(p, o)
		return true
	case apierrors.IsAlreadyExists(err): // admission comes first
		return true
	case apierrors.IsNotFound(err): // a binding to a role that does not exist yet, by a user who may not bind every role
		return true
	case fallback && strings.Contains(err.Error(), "violates PodSecurity"):
		return true // the namespace of the installation has labels of its own
	case apierrors.IsForbidden(err) && isOfRights(err):
		return false // checkRights reports it
	}
	i.addRefusal(p, err)
	return false
}

// dryRun creates an object in a namespace as a dry run, and returns the object as it was admitted.
func (i *inspector) dryRun(ctx context.Context, p plannedObject, namespace string) (client.Object, error) {
	o, _ := p.DeepCopyObject().(client.Object)
	o.SetNamespace(namespace)
	return o, i.askServer(ctx, func(ctx context.Context) error { return i.Create(ctx, o, client.DryRunAll) })
}

// isOfRights reports whether a caller was refused by RBAC before admission was asked.
func isOfRights(err error) bool {
	return strings.Contains(err.Error(), " cannot create resource ") && !strings.Contains(err.Error(), "attempting to grant")
}

// Texts of API servers that name what refused a request.
var (
	refusedByWebhook = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	refusedByPolicy  = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request`)
	silentWebhook    = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
)

// addRefusal adds a finding that says what refused an object, and what to do about it.
func (i *inspector) addRefusal(p plannedObject, err error) {
	text, namespace := err.Error(), cmp.Or(p.GetNamespace(), i.Namespace)
	f := Finding{Blocks, "admission", p.displayName(), "create", "it would be refused: " + text, ""}
	switch {
	case silentWebhook.MatchString(text):
		name := silentWebhook.FindStringSubmatch(text)[1]
		f.Field, f.Fix = "webhook "+name, "have it answer; kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml has it"
	case refusedByWebhook.MatchString(text):
		name := refusedByWebhook.FindStringSubmatch(text)[1]
		f.Field, f.Fix = "webhook "+name, explainExemption(name, namespace)
	case refusedByPolicy.MatchString(text):
		found := refusedByPolicy.FindStringSubmatch(text)
		f.Field = "ValidatingAdmissionPolicy " + found[1]
		f.Fix = fmt.Sprintf("leave namespace %s out by spec.matchResources.namespaceSelector: kubectl edit validatingadmissionpolicybinding %s", namespace, found[2])
	case strings.Contains(text, "violates PodSecurity"):
		f.Field = "Pod Security of namespace " + namespace
		f.Fix = "kubectl label namespace " + namespace + " pod-security.kubernetes.io/enforce=privileged --overwrite, since the node agent is on the network of its node; or leave the agent out: --set featureGates=KruiseDaemon=false"
	case strings.Contains(text, "attempting to grant RBAC permissions not currently held"):
		f.Check, f.Field = "rights", "rules"
		f.Fix = "have a cluster administrator install it, or have the verbs escalate and bind on clusterroles and roles granted to you"
	case strings.Contains(text, "exceeded quota") || strings.Contains(text, "insufficient quota"):
		f.Field, f.Fix = "ResourceQuota", "kubectl describe resourcequota -n "+namespace+", and raise it"
	case errors.Is(err, context.DeadlineExceeded):
		f.Message, f.Fix = fmt.Sprintf("no answer in %s: a webhook may be slow", i.Timeout), "give it longer with --timeout"
	default:
		f.Fix = "kubectl create --dry-run=server -f FILE of it says the same"
	}
	i.addFinding(f)
}

// explainExemption says how users exempt a namespace from a policy engine.
func explainExemption(webhook, namespace string) string {
	switch {
	case strings.Contains(webhook, "gatekeeper"):
		return "leave the namespace out in spec.match.excludedNamespaces of the constraint, or kubectl label namespace " + namespace + " admission.gatekeeper.sh/ignore=true"
	case strings.Contains(webhook, "kyverno"):
		return "make a PolicyException for namespace " + namespace + ", or exclude it in the policy that the message names"
	case strings.HasSuffix(webhook, "openpolicyagent.org"):
		return "kubectl label namespace " + namespace + " openpolicyagent.org/webhook=ignore, if the webhook goes by it"
	}
	return "leave namespace " + namespace + " out by the namespaceSelector of the webhook, or change the rule that the message names"
}

// addChanged reports changes by a webhook that would make an object work differently.
func (i *inspector) addChanged(p plannedObject, after client.Object) {
	switch p.mapping.GroupVersionKind.Kind {
	case "Pod":
		i.addChangedPod(p, after)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		before, _ := p.Object.(*unstructured.Unstructured)
		changed, _ := after.(*unstructured.Unstructured)
		if before != nil && changed != nil && countSelectors(before) != countSelectors(changed) {
			i.addFinding(Finding{Warns, "admission", p.displayName(), "webhooks.namespaceSelector", "another controller adds selectors of namespaces to webhook configurations, so that some namespaces are not asked about",
				"on AKS, kubectl annotate the configuration with admissions.enforcer/disabled=true"})
		}
	}
}

// countSelectors counts what the namespace selectors of a webhook configuration ask for.
func countSelectors(configuration *unstructured.Unstructured) int {
	n := 0
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		expressions, _, _ := unstructured.NestedSlice(hook, "namespaceSelector", "matchExpressions")
		pairs, _, _ := unstructured.NestedMap(hook, "namespaceSelector", "matchLabels")
		n += len(expressions) + len(pairs)
	}
	return n
}

// addChangedPod reports containers that a webhook adds, and of images that it replaces.
func (i *inspector) addChangedPod(p plannedObject, after client.Object) {
	images := func(o client.Object) map[string]string {
		out := map[string]string{}
		u, _ := o.(*unstructured.Unstructured)
		if u == nil {
			return out
		}
		pod := &corev1.Pod{}
		if i.Scheme().Convert(u, pod, nil) != nil {
			return out
		}
		for _, c := range containersOf(&pod.Spec) {
			out[c.Name] = c.Image
		}
		return out
	}
	before := images(p.Object)
	for name, image := range images(after) {
		switch had, ok := before[name]; {
		case !ok:
			i.addFinding(Finding{Warns, "admission", p.displayName(), "spec.containers " + name, "a webhook adds this container, of " + image + ", to the pods of the installation; webhooks and probes of the manager may not be reached through it",
				"leave namespace " + i.Namespace + " out where the webhook is configured, such as kubectl label namespace " + i.Namespace + " istio-injection=disabled"})
		case had != image:
			i.addFinding(Finding{Warns, "admission", p.displayName(), "spec.containers " + name + " image", "a webhook replaces " + had + " by " + image, "see that " + image + " is the image of Regatta"})
		}
	}
}
