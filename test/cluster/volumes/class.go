// SPDX-License-Identifier: Apache-2.0

// Package volumes gives claims their volumes: directories on this machine,
// which every node of a local cluster sees.
package volumes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// User is the user that the provisioner acts as.
const User = "local-volumes"

// Names of the storage class and of who serves it.
const (
	ClassName   = "standard"
	provisioner = "regatta.sh/local"
	// limitParameter of a storage class is the size that no volume of it grows beyond.
	limitParameter = "limit"
)

// What the volume controller and a provisioner tell each other: whose a claim
// is to serve, and whose a volume is to delete.
const (
	forProvisioner = "volume.kubernetes.io/storage-provisioner"
	provisionedBy  = "pv.kubernetes.io/provisioned-by"
)

// CreateClass creates the default storage class.
func CreateClass(ctx context.Context, client kubernetes.Interface) error {
	reclaim, binding, expansion := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate, true
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        ClassName,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:   provisioner,
		ReclaimPolicy: &reclaim,
		// At once: a directory is on every node, so nothing depends on where
		// the pod will be.
		VolumeBindingMode:    &binding,
		AllowVolumeExpansion: &expansion,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the storage class: %w", err)
	}
	return nil
}
