// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// GroupName is the API group of the policies.
const GroupName = v1beta1.GroupName

var (
	// GroupVersion is what objects of this package carry as apiVersion.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes a scheme know the kinds of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterPolicyBundle{}, &ClusterPolicyBundleList{},
		&PolicyBundle{}, &PolicyBundleList{},
		&PodUnavailableBudget{}, &PodUnavailableBudgetList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
