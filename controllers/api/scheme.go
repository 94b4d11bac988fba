// SPDX-License-Identifier: Apache-2.0

// Package api has the Go types of all kinds, by group and version in the packages
// below it.
package api

import (
	"k8s.io/apimachinery/pkg/runtime"

	appsv1alpha1 "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	appsv1beta1 "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// AddToScheme makes a scheme know every kind, in every version.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(
		appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme, policyv1alpha1.AddToScheme, policyv1beta1.AddToScheme,
	)
	return builder.AddToScheme(scheme)
}
