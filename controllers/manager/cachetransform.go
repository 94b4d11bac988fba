// SPDX-License-Identifier: Apache-2.0

package manager

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
)

// cacheTransform drops what the caches need not keep. Of a workload of another
// controller it keeps the owners and the number of pods, since there are many; of a
// ControllerRevision with a policy bundle all but the bundle.
func cacheTransform(o any) (any, error) {
	o, err := cache.TransformStripManagedFields()(o)
	if err != nil {
		return o, err
	}
	switch w := o.(type) {
	case *appsv1.ControllerRevision: // archives of policies are read past the cache
		if w.Labels[bundlerevision.Label] != "" {
			w.Data = runtime.RawExtension{}
		}
		return w, nil
	case *appsv1.Deployment:
		w.Spec, w.Status = appsv1.DeploymentSpec{Replicas: w.Spec.Replicas}, appsv1.DeploymentStatus{}
	case *appsv1.ReplicaSet:
		w.Spec, w.Status = appsv1.ReplicaSetSpec{Replicas: w.Spec.Replicas}, appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		w.Spec, w.Status = appsv1.StatefulSetSpec{Replicas: w.Spec.Replicas}, appsv1.StatefulSetStatus{}
	default:
		return o, nil
	}
	if w, ok := o.(client.Object); ok {
		w.SetAnnotations(nil)
		w.SetLabels(nil)
	}
	return o, nil
}
