package podtemplate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// fileMode is what files of config maps, secrets and the like get: rw-r--r--.
const fileMode int32 = 0o644

func defaultVolume(volume *corev1.Volume) {
	source := &volume.VolumeSource
	if ptr.AllPtrFieldsNil(source) {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if source.HostPath != nil {
		orPointTo(&source.HostPath.Type, corev1.HostPathUnset)
	}
	if source.Secret != nil {
		orPointTo(&source.Secret.DefaultMode, fileMode)
	}
	if source.ConfigMap != nil {
		orPointTo(&source.ConfigMap.DefaultMode, fileMode)
	}
	if source.DownwardAPI != nil {
		orPointTo(&source.DownwardAPI.DefaultMode, fileMode)
		defaultDownwardAPI(source.DownwardAPI.Items)
	}
	if source.Projected != nil {
		orPointTo(&source.Projected.DefaultMode, fileMode)
		for i := range source.Projected.Sources {
			defaultProjection(&source.Projected.Sources[i])
		}
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		defaultClaimSpec(&source.Ephemeral.VolumeClaimTemplate.Spec)
	}
	if source.Image != nil {
		orElse(&source.Image.PullPolicy, pullPolicy(source.Image.Reference))
	}
	defaultDisk(source)
}

func defaultProjection(source *corev1.VolumeProjection) {
	if source.DownwardAPI != nil {
		defaultDownwardAPI(source.DownwardAPI.Items)
	}
	if source.ServiceAccountToken != nil {
		orPointTo(&source.ServiceAccountToken.ExpirationSeconds, int64(time.Hour.Seconds()))
	}
}

func defaultDownwardAPI(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultDisk fills in the sources that name a device.
func defaultDisk(source *corev1.VolumeSource) {
	if source.ISCSI != nil {
		orElse(&source.ISCSI.ISCSIInterface, "default")
	}
	if source.RBD != nil {
		orElse(&source.RBD.RBDPool, "rbd")
		orElse(&source.RBD.RadosUser, "admin")
		orElse(&source.RBD.Keyring, "/etc/ceph/keyring")
	}
	if source.AzureDisk != nil {
		orPointTo(&source.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		orPointTo(&source.AzureDisk.FSType, "ext4")
		orPointTo(&source.AzureDisk.ReadOnly, false)
		orPointTo(&source.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if source.ScaleIO != nil {
		orElse(&source.ScaleIO.StorageMode, "ThinProvisioned")
		orElse(&source.ScaleIO.FSType, "xfs")
	}
}
