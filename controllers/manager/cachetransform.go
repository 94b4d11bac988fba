// SPDX-License-Identifier: Apache-2.0

package manager

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/regatta-sh/regatta/controllers/advancedcronjob"
	"github.com/regatta-sh/regatta/controllers/persistentpodstate"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/uniteddeployment"
	"github.com/regatta-sh/regatta/controllers/workloadspread"
)

// cacheTransform drops fields that the caches need not keep. Workloads of other controllers are many,
// so it keeps only their owners and the number of their pods, unless a UnitedDeployment owns them.
// From a ControllerRevision with a policy bundle it drops the bundle.
func cacheTransform(o any) (any, error) {
	o, err := cache.TransformStripManagedFields()(o)
	if err != nil {
		return o, err
	}
	switch w := o.(type) {
	case *appsv1.ControllerRevision: // archives of policies are read from the API server
		if w.Labels[bundlerevision.Label] != "" {
			w.Data = runtime.RawExtension{}
		}
		return w, nil
	case *corev1.Node: // the list of images is the largest part of a Node
		w.Status.Images = nil
		return w, nil
	case *corev1.Service: // only the selector is read
		w.Spec, w.Status = corev1.ServiceSpec{Selector: w.Spec.Selector}, corev1.ServiceStatus{}
	case *batchv1.Job: // the status is kept only for the Jobs of AdvancedCronJobs
		w.Spec = batchv1.JobSpec{Parallelism: w.Spec.Parallelism}
		if advancedcronjob.OwnsObject(w) {
			return w, nil
		}
		w.Status = batchv1.JobStatus{}
	case *appsv1.Deployment:
		if uniteddeployment.OwnsObject(w) {
			return w, nil
		}
		w.Spec, w.Status = appsv1.DeploymentSpec{Replicas: w.Spec.Replicas}, appsv1.DeploymentStatus{}
	case *appsv1.ReplicaSet: // its revision in the Deployment is kept
		w.Spec, w.Status = appsv1.ReplicaSetSpec{Replicas: w.Spec.Replicas}, appsv1.ReplicaSetStatus{}
		hash, number := w.Labels[appsv1.DefaultDeploymentUniqueLabelKey], w.Annotations[workloadspread.DeploymentRevisionKey]
		w.Labels, w.Annotations = nil, nil
		if hash != "" && number != "" {
			w.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
			w.Annotations = map[string]string{workloadspread.DeploymentRevisionKey: number}
		}
		return w, nil
	case *appsv1.StatefulSet:
		if uniteddeployment.OwnsObject(w) {
			return w, nil
		}
		w.Spec, w.Status = appsv1.StatefulSetSpec{Replicas: w.Spec.Replicas, Ordinals: w.Spec.Ordinals}, appsv1.StatefulSetStatus{}
		w.SetLabels(nil)
		w.SetAnnotations(persistentpodstate.RequestAnnotations(w.Annotations))
		return w, nil
	case *metav1.PartialObjectMetadata:
		if w.Kind != "ConfigMap" { // whose they are is all that is asked of these
			return w, nil
		}
	default:
		return o, nil
	}
	if w, ok := o.(client.Object); ok {
		w.SetAnnotations(nil)
		w.SetLabels(nil)
	}
	return o, nil
}
