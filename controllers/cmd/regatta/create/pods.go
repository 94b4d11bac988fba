// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
)

// podFlags are the flags of jobs about their pods, which have one container.
type podFlags struct {
	image   string
	restart corev1.RestartPolicy
}

func (p *podFlags) addFlags(f *pflag.FlagSet, restartUsage string) {
	addImageFlag(f, &p.image, "`IMAGE` of the container")
	addChoiceFlag(f, &p.restart, "restart", restartUsage, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
}

// buildTemplate makes the template of the pods. The container has the name of the object.
func (p *podFlags) buildTemplate(name string, command []string) (corev1.PodTemplateSpec, error) {
	if p.image == "" {
		return corev1.PodTemplateSpec{}, errors.New("--image is missing: name the image of the container")
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:    []corev1.Container{{Name: name, Image: p.image, Command: command}},
		RestartPolicy: p.restart,
	}}, nil
}
