// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kubernetes pins Kubernetes 1.34, whose programs a local
// cluster runs if it is asked to. Nothing links it: the imports keep go.mod honest.
package kubernetes

import (
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/cmd/kube-proxy/app"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
)
