// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// revisionNumber is the annotation of a Deployment and of its ReplicaSets with the number of the revision.
const revisionNumber = "deployment.kubernetes.io/revision"

// newRevisionWatcher watches the ReplicaSets of a Deployment or the ControllerRevisions of a DaemonSet of Kubernetes, whose status
// does not name the newest revision. It returns nil for other kinds.
func newRevisionWatcher(core kubernetes.Interface, kind edit.Kind, namespace string, selector labels.Selector, feed *changeFeed) *watcher {
	if !kind.IsNative() {
		return nil
	}
	switch kind.Kind {
	case "Deployment":
		sets := core.AppsV1().ReplicaSets(namespace)
		return newWatcher("replicasets.apps", &appsv1.ReplicaSet{}, watchSource{core, "", selector,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return sets.List(ctx, o) }, sets.Watch}, feed, trimRevision)
	case "DaemonSet":
		revisions := core.AppsV1().ControllerRevisions(namespace)
		return newWatcher("controllerrevisions.apps", &appsv1.ControllerRevision{}, watchSource{core, "", selector,
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return revisions.List(ctx, o) }, revisions.Watch}, feed, trimRevision)
	}
	return nil
}

// trimRevision keeps what tells which revision is the newest.
func trimRevision(object any) (any, error) {
	switch o := object.(type) {
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: trimMeta(o.ObjectMeta)}, nil
	case *appsv1.ControllerRevision:
		return &appsv1.ControllerRevision{ObjectMeta: trimMeta(o.ObjectMeta), Revision: o.Revision}, nil
	}
	return object, nil
}

func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels, OwnerReferences: m.OwnerReferences,
		Annotations: map[string]string{revisionNumber: m.Annotations[revisionNumber]},
	}
}

// newestRevision returns the newest revision as labels of pods have it, "" if that is not known.
func (s *rolloutSource) newestRevision(object *unstructured.Unstructured, inStatus string) string {
	if inStatus != "" || s.revisions == nil {
		return inStatus
	}
	for _, set := range listObjects[*appsv1.ReplicaSet](s.revisions) {
		if metav1.IsControlledBy(set, object) && set.Annotations[revisionNumber] == object.GetAnnotations()[revisionNumber] {
			return set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	newest := &appsv1.ControllerRevision{Revision: -1}
	for _, r := range listObjects[*appsv1.ControllerRevision](s.revisions) {
		if metav1.IsControlledBy(r, object) && r.Revision > newest.Revision {
			newest = r
		}
	}
	return newest.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// ownerUIDs returns the UIDs of what may own the pods: the workload, and the ReplicaSets of a Deployment.
func (s *rolloutSource) ownerUIDs(object *unstructured.Unstructured) map[string]bool {
	out := map[string]bool{string(object.GetUID()): true}
	if s.revisions != nil {
		for _, set := range listObjects[*appsv1.ReplicaSet](s.revisions) {
			if metav1.IsControlledBy(set, object) {
				out[string(set.UID)] = true
			}
		}
	}
	return out
}
