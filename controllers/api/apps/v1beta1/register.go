// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the workloads.
const GroupName = "apps.kruise.io"

var (
	// GroupVersion is what objects of this package carry as apiVersion.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes a scheme know the kinds of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind qualifies a kind with the group of this package.
func Kind(kind string) schema.GroupKind { return GroupVersion.WithKind(kind).GroupKind() }

// Resource qualifies a resource with the group of this package.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&AdvancedCronJob{}, &AdvancedCronJobList{},
		&BroadcastJob{}, &BroadcastJobList{},
		&CloneSet{}, &CloneSetList{},
		&ContainerRecreateRequest{}, &ContainerRecreateRequestList{},
		&DaemonSet{}, &DaemonSetList{},
		&ImageListPullJob{}, &ImageListPullJobList{},
		&ImagePullJob{}, &ImagePullJobList{},
		&NodeImage{}, &NodeImageList{},
		&PersistentPodState{}, &PersistentPodStateList{},
		&ResourceDistribution{}, &ResourceDistributionList{},
		&SidecarSet{}, &SidecarSetList{},
		&StatefulSet{}, &StatefulSetList{},
		&UnitedDeployment{}, &UnitedDeploymentList{},
		&WorkloadSpread{}, &WorkloadSpreadList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
