// SPDX-License-Identifier: Apache-2.0

// Package sidecars runs the CSI driver of a cluster beside its control plane, with the
// programs of the Kubernetes CSI project that call it: the external-provisioner, which
// makes the volumes of claims, and the external-resizer, which has them grow.
package sidecars

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/test/cluster/csi"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// ClassName is the storage class of the driver, which is not the default one.
const ClassName = "csi"

// Names of the processes. The two that are no part of this repository act as users of
// these names.
const (
	Driver      = "csi"
	Provisioner = "csi-provisioner"
	Resizer     = "csi-resizer"
)

// Programs lists the programs to build.
func Programs() []string { return []string{Provisioner, Resizer} }

// Volumes is the directory of the driver's volumes.
func Volumes(s *state.State) string { return s.Path("csi", "volumes") }

// Socket is where the driver's controller service answers.
func Socket(s *state.State) string { return s.Path("csi", "csi.sock") }

// Processes lists what to run, in the order in which to start it. self is the path of
// the cluster command, which is the driver.
func Processes(s *state.State, self string, programs map[string]string) []process.Spec {
	sidecar := func(name string) process.Spec {
		return process.Spec{Name: name, Path: programs[name], Log: s.Log(name), Args: []string{
			"--csi-address=" + Socket(s), "--kubeconfig=" + s.Users[name], "--timeout=30s",
			// What failed may have been mended: an answer in minutes is of no use to a test.
			"--retry-interval-start=500ms", "--retry-interval-max=5s",
			"--kube-api-qps=200", "--kube-api-burst=400",
		}}
	}
	return []process.Spec{
		{Name: Driver, Path: self, Log: s.Log(Driver), Args: []string{"csi", "--dir=" + s.Dir}},
		sidecar(Provisioner), sidecar(Resizer),
	}
}

// CreateObjects creates the objects that describe the driver to Kubernetes, and its storage class.
func CreateObjects(ctx context.Context, client kubernetes.Interface) error {
	attach := false // a directory is on every node
	_, err := client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: csi.Name},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &attach},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the CSI driver: %w", err)
	}
	reclaim, binding, expansion := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate, true
	_, err = client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: ClassName},
		Provisioner:          csi.Name,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &binding,
		AllowVolumeExpansion: &expansion,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the storage class of the CSI driver: %w", err)
	}
	return nil
}

// Registered returns nil when the kubelets of all real nodes know the driver.
func Registered(ctx context.Context, client kubernetes.Interface, s *state.State) error {
	for number := 1; number <= s.Real; number++ {
		name := state.RealNode(number)
		found, err := client.StorageV1().CSINodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("asking for the CSI drivers of %s: %w", name, err)
		}
		if !slices.ContainsFunc(found.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == csi.Name }) {
			return fmt.Errorf("the kubelet of %s does not know the CSI driver", name)
		}
	}
	return nil
}
