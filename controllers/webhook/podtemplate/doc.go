// SPDX-License-Identifier: Apache-2.0

// Package podtemplate does for the pod and claim templates of Regatta's workloads what the API server does for those of
// its own: it sets defaults and finds errors. Regatta's CRDs have no schema for templates, so the API server does neither.
//
// The product cannot import k8s.io/kubernetes, so the rules are written here. They are a subset of the API
// server's rules: a template that is refused here would be refused when its pods are created.
package podtemplate
