// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
)

// space is the namespace of the manager, as it is or as it will be.
type space struct {
	labels map[string]string
	// usable is whether objects can be created in it now, ending whether it is being deleted.
	usable, ending bool
}

// checkNamespace looks at the namespace of the manager.
func (i *inspector) checkNamespace(ctx context.Context, planned []client.Object) space {
	made := slices.IndexFunc(planned, func(o client.Object) bool {
		return o.GetObjectKind().GroupVersionKind().Kind == "Namespace" && o.GetName() == i.Namespace
	})
	object := nameOf("Namespace", "", i.Namespace)
	found := &corev1.Namespace{}
	err := i.askServer(ctx, func(ctx context.Context) error { return i.Get(ctx, client.ObjectKey{Name: i.Namespace}, found) })
	switch {
	case apierrors.IsNotFound(err) && made < 0:
		i.addFinding(Finding{Blocks, "there", object, "metadata.name", "it is not there, and the installation does not make it", "kubectl create namespace " + i.Namespace})
		return space{labels: withName(nil, i.Namespace)}
	case apierrors.IsNotFound(err):
		i.addFinding(Finding{Fine, "there", object, "metadata.name", "it is not there; the installation makes it", ""})
		return space{labels: withName(planned[made].GetLabels(), i.Namespace)}
	case err != nil:
		i.addError("there", object, "get", err)
		return space{labels: withName(nil, i.Namespace)}
	}
	if found.DeletionTimestamp != nil || found.Status.Phase == corev1.NamespaceTerminating {
		message := "it is being deleted"
		for _, c := range found.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				message += "; " + c.Message
			}
		}
		i.addFinding(Finding{Blocks, "there", object, "metadata.deletionTimestamp", message, "wait until it is gone: kubectl wait --for=delete namespace/" + i.Namespace + " --timeout=5m"})
		return space{labels: found.Labels, ending: true}
	}
	if made >= 0 && found.Annotations[preflight.ReleaseName] == "" {
		i.addFinding(Finding{Blocks, "there", object, "metadata.annotations", "it is there and of no release, so that Helm refuses to make it", "helm install with --set installation.createNamespace=false"})
	}
	return space{labels: found.Labels, usable: true}
}

// withName adds the label that the API server gives each namespace.
func withName(labels map[string]string, name string) map[string]string {
	out := map[string]string{corev1.LabelMetadataName: name}
	maps.Copy(out, labels)
	return out
}

// release is one revision of a release of Helm.
type release struct {
	namespace, status string
	revision          int
}

// checkReleases checks the state that Helm keeps of the release, without its contents: the labels of its secrets have the
// status.
func (i *inspector) checkReleases(ctx context.Context) {
	latest, ok := i.findReleases(ctx)
	if !ok {
		return
	}
	for _, namespace := range slices.Sorted(maps.Keys(latest)) {
		r := latest[namespace]
		object := nameOf("Release", namespace, i.Release)
		f := Finding{Blocks, "there", object, "revision " + strconv.Itoa(r.revision), "", ""}
		switch r.status {
		case "deployed":
			f.Message = "Helm has it as deployed, but no manager of Regatta is in namespace " + i.Namespace
			f.Fix = "if it is Regatta: helm upgrade " + i.Release + " charts/kruise -n " + namespace + "; if it is another chart, name the installation otherwise, and check that by --release"
		case "failed":
			f.Message = "an installation or an upgrade failed"
			f.Fix = "helm upgrade --install " + i.Release + " charts/kruise -n " + namespace + "; helm status " + i.Release + " -n " + namespace + " says why it failed"
		case "pending-install", "pending-upgrade", "pending-rollback":
			f.Message = "it is " + r.status + ": Helm is at it, or was ended meanwhile; while it says so, Helm refuses another operation"
			f.Fix = "if no Helm runs: helm uninstall " + i.Release + " -n " + namespace + " --no-hooks; objects of kinds of Regatta and their CRDs stay"
		case "uninstalling":
			f.Message = "it is half uninstalled"
			f.Fix = "helm uninstall " + i.Release + " -n " + namespace + " again"
		default:
			f.Status, f.Message = Fine, "it is "+r.status
		}
		i.addFinding(f)
	}
	if len(latest) == 0 {
		i.addFinding(Finding{Fine, "there", nameOf("Release", "", i.Release), "status", "Helm has none", ""})
	}
}

// findReleases returns the newest revisions of the release, by the namespaces that Helm keeps them in.
func (i *inspector) findReleases(ctx context.Context) (map[string]release, bool) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	selected := client.MatchingLabels{"owner": "helm", "name": i.Release}
	err := i.askServer(ctx, func(ctx context.Context) error { return i.List(ctx, secrets, selected) })
	if apierrors.IsForbidden(err) {
		err = i.askServer(ctx, func(ctx context.Context) error {
			return i.List(ctx, secrets, selected, client.InNamespace(i.ReleaseNamespace))
		})
	}
	if err != nil {
		i.addError("there", "secrets of release "+i.Release, "list", err)
		return nil, false
	}
	latest := map[string]release{}
	for n := range secrets.Items {
		s := &secrets.Items[n]
		revision, err := strconv.Atoi(s.Labels["version"])
		if before, ok := latest[s.Namespace]; err == nil && (!ok || before.revision < revision) {
			latest[s.Namespace] = release{s.Namespace, s.Labels["status"], revision}
		}
	}
	return latest, true
}

// checkOwners checks which objects exist already, and whether Helm would adopt them.
func (i *inspector) checkOwners(ctx context.Context, planned []plannedObject) {
	inParallel(len(planned), func(k int) {
		p := planned[k]
		if p.mapping.GroupVersionKind.Kind == "Namespace" && p.GetName() == i.Namespace {
			return // checkNamespace reports it
		}
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(p.mapping.GroupVersionKind)
		err := i.askServer(ctx, func(ctx context.Context) error { return i.Get(ctx, client.ObjectKeyFromObject(p), found) })
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			i.addError("there", p.displayName(), "get", err)
		default:
			i.addOwner(p, found)
		}
	})
}

func (i *inspector) addOwner(p plannedObject, found *metav1.PartialObjectMetadata) {
	owner, namespace := found.Annotations[preflight.ReleaseName], found.Annotations[preflight.ReleaseNamespace]
	const field = "metadata.annotations"
	switch {
	case found.DeletionTimestamp != nil:
		i.addFinding(Finding{Blocks, "there", p.displayName(), "metadata.deletionTimestamp", fmt.Sprintf("it is being deleted, and waits for its finalizers %v", found.Finalizers),
			"kubectl get " + p.mapping.Resource.GroupResource().String() + "/" + p.GetName() + " -o yaml says what it waits for"})
	case owner == i.Release && namespace == i.ReleaseNamespace:
		i.addFinding(Finding{Warns, "there", p.displayName(), field, "it was left by a release of the same name, and Helm takes it over", ""})
	case owner == "":
		i.addFinding(Finding{Blocks, "there", p.displayName(), field, "it is there and of no release, so that Helm refuses to make it; it may be of OpenKruise",
			"helm install " + i.Release + " charts/kruise --take-ownership, with Helm 3.17 or newer; regatta preflight if OpenKruise runs"})
	default:
		i.addFinding(Finding{Blocks, "there", p.displayName(), field, "it is of release " + namespace + "/" + owner + ", so that Helm refuses to make it for " + i.ReleaseNamespace + "/" + i.Release,
			"install as " + owner + " with -n " + namespace + ", or helm uninstall " + owner + " -n " + namespace})
	}
}
