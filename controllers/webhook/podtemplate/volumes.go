// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
)

// fileMode is the default mode of files of config maps, secrets and similar volumes: rw-r--r--.
const fileMode int32 = 0o644

func defaultVolume(volume *corev1.Volume) {
	source := &volume.VolumeSource
	if ptr.AllPtrFieldsNil(source) {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if source.HostPath != nil {
		defaulting.SetIfNil(&source.HostPath.Type, corev1.HostPathUnset)
	}
	if source.Secret != nil {
		defaulting.SetIfNil(&source.Secret.DefaultMode, fileMode)
	}
	if source.ConfigMap != nil {
		defaulting.SetIfNil(&source.ConfigMap.DefaultMode, fileMode)
	}
	if source.DownwardAPI != nil {
		defaulting.SetIfNil(&source.DownwardAPI.DefaultMode, fileMode)
		defaultDownwardAPI(source.DownwardAPI.Items)
	}
	if source.Projected != nil {
		defaulting.SetIfNil(&source.Projected.DefaultMode, fileMode)
		for i := range source.Projected.Sources {
			defaultProjection(&source.Projected.Sources[i])
		}
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		defaultClaimSpec(&source.Ephemeral.VolumeClaimTemplate.Spec)
	}
	if source.Image != nil {
		defaulting.SetIfEmpty(&source.Image.PullPolicy, pullPolicy(source.Image.Reference))
	}
	defaultDisk(source)
}

func defaultProjection(source *corev1.VolumeProjection) {
	if source.DownwardAPI != nil {
		defaultDownwardAPI(source.DownwardAPI.Items)
	}
	if source.ServiceAccountToken != nil {
		defaulting.SetIfNil(&source.ServiceAccountToken.ExpirationSeconds, int64(time.Hour.Seconds()))
	}
}

func defaultDownwardAPI(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultDisk sets defaults of the sources that name a device.
func defaultDisk(source *corev1.VolumeSource) {
	if source.ISCSI != nil {
		defaulting.SetIfEmpty(&source.ISCSI.ISCSIInterface, "default")
	}
	if source.RBD != nil {
		defaulting.SetIfEmpty(&source.RBD.RBDPool, "rbd")
		defaulting.SetIfEmpty(&source.RBD.RadosUser, "admin")
		defaulting.SetIfEmpty(&source.RBD.Keyring, "/etc/ceph/keyring")
	}
	if source.AzureDisk != nil {
		defaulting.SetIfNil(&source.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaulting.SetIfNil(&source.AzureDisk.FSType, "ext4")
		defaulting.SetIfNil(&source.AzureDisk.ReadOnly, false)
		defaulting.SetIfNil(&source.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if source.ScaleIO != nil {
		defaulting.SetIfEmpty(&source.ScaleIO.StorageMode, "ThinProvisioned")
		defaulting.SetIfEmpty(&source.ScaleIO.FSType, "xfs")
	}
}
