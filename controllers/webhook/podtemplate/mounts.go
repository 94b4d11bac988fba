// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumes says for each volume, by name, whether it can be a block device, which only claims can.
type volumes map[string]bool

func volumesOf(sources []corev1.Volume, claims []string) volumes {
	all := volumes{}
	for i := range sources {
		all[sources[i].Name] = sources[i].PersistentVolumeClaim != nil || sources[i].Ephemeral != nil
	}
	for _, claim := range claims {
		all[claim] = true
	}
	return all
}

func validateVolumes(sources []corev1.Volume, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range sources {
		errs = append(errs, validateName(sources[i].Name, names, at.Index(i).Child("name"))...)
		errs = append(errs, validateSource(&sources[i].VolumeSource, at.Index(i))...)
	}
	return errs
}

// validateSource requires exactly one source, and the required fields of the most used sources.
func validateSource(source *corev1.VolumeSource, at *field.Path) field.ErrorList {
	set := sourcesOf(source)
	switch {
	case len(set) == 0:
		return field.ErrorList{field.Required(at, "must specify a volume type")}
	case len(set) > 1:
		return field.ErrorList{field.Forbidden(at.Child(set[1]), "may not specify more than 1 volume type")}
	}
	var name string
	var child *field.Path
	switch {
	case source.PersistentVolumeClaim != nil:
		name, child = source.PersistentVolumeClaim.ClaimName, at.Child("persistentVolumeClaim", "claimName")
	case source.Secret != nil:
		name, child = source.Secret.SecretName, at.Child("secret", "secretName")
	case source.ConfigMap != nil:
		name, child = source.ConfigMap.Name, at.Child("configMap", "name")
	case source.HostPath != nil:
		name, child = source.HostPath.Path, at.Child("hostPath", "path")
		if slices.Contains(strings.Split(name, "/"), "..") {
			return field.ErrorList{field.Invalid(child, name, "must not contain '..'")}
		}
	default:
		return nil
	}
	if name == "" {
		return field.ErrorList{field.Required(child, "")}
	}
	return nil
}

// validateMounts requires that every mount and device names a volume, and has its own path.
func validateMounts(container *corev1.Container, volumes volumes, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := sets.New[string]()
	for i, mount := range container.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if mount.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else if _, ok := volumes[mount.Name]; !ok {
			errs = append(errs, field.NotFound(at.Child("name"), mount.Name))
		}
		errs = append(errs, ownPath(mount.MountPath, paths, at.Child("mountPath"))...)
		errs = append(errs, validateRelativePath(mount.SubPath, at.Child("subPath"))...)
		errs = append(errs, validateRelativePath(mount.SubPathExpr, at.Child("subPathExpr"))...)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
	}
	for i, device := range container.VolumeDevices {
		at := at.Child("volumeDevices").Index(i)
		canBeDevice, ok := volumes[device.Name]
		switch {
		case device.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case !ok:
			errs = append(errs, field.NotFound(at.Child("name"), device.Name))
		case !canBeDevice:
			errs = append(errs, field.Invalid(at.Child("name"), device.Name, "must be a claim or an ephemeral volume"))
		}
		errs = append(errs, ownPath(device.DevicePath, paths, at.Child("devicePath"))...)
	}
	return errs
}

func ownPath(text string, taken sets.Set[string], at *field.Path) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if taken.Has(text) {
		return field.ErrorList{field.Invalid(at, text, "must be unique")}
	}
	taken.Insert(text)
	return nil
}

func validateRelativePath(text string, at *field.Path) field.ErrorList {
	if path.IsAbs(text) {
		return field.ErrorList{field.Invalid(at, text, "must be a relative path")}
	}
	if slices.Contains(strings.Split(text, "/"), "..") {
		return field.ErrorList{field.Invalid(at, text, "must not contain '..'")}
	}
	return nil
}

// sourcesOf names the sources that are set, in the order of the API.
func sourcesOf(source *corev1.VolumeSource) []string {
	var set []string
	value := reflect.ValueOf(*source)
	for i := range value.NumField() {
		if field := value.Field(i); field.Kind() == reflect.Pointer && !field.IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			set = append(set, name)
		}
	}
	return set
}
