// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

// Whatever a Secret has, an error about it is short and repeats no login.
func FuzzAddSecret(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"auths":null}`)
	f.Add(`{"auths":{"a.b":null,"c.d":{"auth":"x"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for key, of := range map[string]corev1.SecretType{corev1.DockerConfigJsonKey: corev1.SecretTypeDockerConfigJson, corev1.DockerConfigKey: corev1.SecretTypeDockercfg} {
			err := new(Keyring).AddSecret(&corev1.Secret{Type: of, Data: map[string][]byte{key: []byte(text)}})
			if err != nil && len(err.Error()) > 4<<10 {
				t.Errorf("the error has %d bytes, and begins %s", len(err.Error()), strings.ToValidUTF8(err.Error()[:100], ""))
			}
		}
	})
}
