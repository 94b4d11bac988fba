// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// provision makes the volume of a claim. The name follows the claim's UID, so
// that a round which comes too early makes nothing twice.
func (p *Provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := "pvc-" + string(claim.UID)
	if _, err := p.volumes.Get(name); err == nil {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return fmt.Errorf("reading the class of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume(name, p.dir, class.Name, claim), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func volume(name, dir, class string, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	// Made by whichever node mounts it first; on simulated nodes, never.
	kind := corev1.HostPathDirectoryOrCreate
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(dir, name), Type: &kind},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
		},
	}
}

// resize grows the volume of a claim that asks for more than it has: first the
// volume, then what the claim says it has, as a real driver would.
func (p *Provisioner) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if had := claim.Status.Capacity[corev1.ResourceStorage]; wanted.Cmp(had) <= 0 {
		return nil
	}
	if refused, err := p.refuse(ctx, claim, wanted); err != nil || refused {
		return err
	}
	capacity := map[string]string{"storage": wanted.String()}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": capacity}})
	if err != nil {
		return fmt.Errorf("encoding a capacity: %w", err)
	}
	_, err = p.client.CoreV1().PersistentVolumes().Patch(ctx, claim.Spec.VolumeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("growing the volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return p.say(ctx, claim, map[string]any{"capacity": capacity, "conditions": nil})
}

// refuse reports a claim that asks for more than its class has, in the way of the
// external-resizer. A class has no limit unless its parameters name one.
func (p *Provisioner) refuse(ctx context.Context, claim *corev1.PersistentVolumeClaim, wanted resource.Quantity) (bool, error) {
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return false, fmt.Errorf("reading the class of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	text := class.Parameters[limitParameter]
	if text == "" {
		return false, nil
	}
	limit, err := resource.ParseQuantity(text)
	if err != nil {
		return false, fmt.Errorf("reading parameter %s of storage class %s: %w", limitParameter, class.Name, err)
	}
	if wanted.Cmp(limit) <= 0 {
		return false, nil
	}
	return true, p.say(ctx, claim, map[string]any{"conditions": []any{map[string]any{
		"type": corev1.PersistentVolumeClaimControllerResizeError, "status": corev1.ConditionTrue,
		"message": fmt.Sprintf("%s is more than the %s that a volume of class %s may have", wanted.String(), text, class.Name),
	}}})
}

// say writes a part of a claim's status.
func (p *Provisioner) say(ctx context.Context, claim *corev1.PersistentVolumeClaim, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding a status: %w", err)
	}
	_, err = p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("growing claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
