// SPDX-License-Identifier: Apache-2.0

// Package podtemplate does for the pod and claim templates of our workloads what the API server does for those of its own:
// it fills in defaults and finds mistakes. Our CRDs keep templates without a schema, so the API server does not.
//
// The product cannot import k8s.io/kubernetes, so the rules are written here. They are a subset: whatever is
// refused here the API server would refuse when the pod is created. A Checker asks the server itself for the rest.
package podtemplate
