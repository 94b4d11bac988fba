// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// SS-19: init containers are hashed, all of them, if one of them stays running.
func TestInitContainersAreHashedIfOneStaysRunning(t *testing.T) {
	load := kruise.SidecarContainer{Container: corev1.Container{Name: "load", Image: "load:1"}}
	mesh := func(image string) kruise.SidecarContainer {
		return kruise.SidecarContainer{Container: corev1.Container{Name: "mesh", Image: image, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	}
	of := func(inits ...kruise.SidecarContainer) Hashes {
		t.Helper()
		out, err := HashesOf(&kruise.SidecarSetSpec{
			Containers:     []kruise.SidecarContainer{{Container: corev1.Container{Name: "shipper", Image: "logs:1"}}},
			InitContainers: inits,
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	none, native, both := of(), of(mesh("mesh:1")), of(load, mesh("mesh:1"))
	if got := of(load); got != none {
		t.Errorf("one that ends changes %+v to %+v", none, got)
	}
	const whole = `{"containers":[{"name":"shipper","image":"logs:1","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{}}],` +
		`"initContainers":[{"name":"load","image":"load:1","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{}},` +
		`{"name":"mesh","image":"mesh:1","resources":{},"restartPolicy":"Always","upgradeStrategy":{},"shareVolumePolicy":{}}]}`
	bare := regexp.MustCompile(`"image":"[^"]*",`).ReplaceAllString(whole, "")
	if want := (Hashes{Hash: sum(whole), WithoutImage: sum(bare)}); both != want {
		t.Errorf("got %+v, want %+v", both, want)
	}
	for name, others := range map[string]Hashes{"none": none, "one that stays running alone": native} {
		if both.Hash == others.Hash || both.WithoutImage == others.WithoutImage {
			t.Errorf("got %+v as with %s", both, name)
		}
	}
	if got := of(load, mesh("mesh:2")); got.Hash == both.Hash || got.WithoutImage != both.WithoutImage {
		t.Errorf("another image changes %+v to %+v", both, got)
	}
}

// sum is what OpenKruise makes of a document.
func sum(document string) string {
	return rand.SafeEncodeString(fmt.Sprintf("%x", sha256.Sum256([]byte(document))))
}
