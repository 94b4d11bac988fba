// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func claim(name, size string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	class := ClassName
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1", Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

func run(t *testing.T, dir string) kubernetes.Interface {
	t.Helper()
	client := fake.NewClientset()
	if err := CreateClass(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, client, dir, log.New(io.Discard, "", 0)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestLifeOfAVolume(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	client := run(t, dir)
	claims, volumes := client.CoreV1().PersistentVolumeClaims("default"), client.CoreV1().PersistentVolumes()
	ours, err := claims.Create(ctx, claim("data", "1Gi", map[string]string{forProvisioner: provisioner}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volume := func() *corev1.PersistentVolume {
		found, err := volumes.Get(ctx, "pvc-uid-1", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return found
	}
	eventually(t, "a volume is made", func() bool { return volume() != nil })
	if got := volume(); got.Spec.ClaimRef.Name != "data" || got.Spec.HostPath.Path != filepath.Join(dir, "pvc-uid-1") || got.Spec.StorageClassName != ClassName {
		t.Errorf("it is %+v", got.Spec)
	}

	// The volume controller, which is not here, binds the two; the user asks for more.
	ours.Spec.VolumeName, ours.Status.Phase = "pvc-uid-1", corev1.ClaimBound
	ours.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	ours.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	if _, err := claims.Update(ctx, ours, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both grow", func() bool {
		grown, err := claims.Get(ctx, "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		has, had := grown.Status.Capacity[corev1.ResourceStorage], volume().Spec.Capacity[corev1.ResourceStorage]
		return has.String() == "2Gi" && had.String() == "2Gi"
	})

	if err := os.MkdirAll(filepath.Join(dir, "pvc-uid-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(ctx, "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	released := volume()
	released.Status.Phase = corev1.VolumeReleased
	if _, err := volumes.Update(ctx, released, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the volume goes", func() bool {
		_, err := volumes.Get(ctx, "pvc-uid-1", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, err := os.Stat(filepath.Join(dir, "pvc-uid-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory stays: %v", err)
	}
}

// A claim that asks for more than its class allows reports it, and grows as soon as it asks for less.
func TestAVolumeDoesNotGrowBeyondTheLimitOfItsClass(t *testing.T) {
	ctx := t.Context()
	client := run(t, t.TempDir())
	class, err := client.StorageV1().StorageClasses().Get(ctx, ClassName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	class.Parameters = map[string]string{limitParameter: "3Gi"}
	if _, err := client.StorageV1().StorageClasses().Update(ctx, class, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	claims := client.CoreV1().PersistentVolumeClaims("default")
	if _, err := claims.Create(ctx, claim("data", "1Gi", map[string]string{forProvisioner: provisioner}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a volume is made", func() bool {
		_, err := client.CoreV1().PersistentVolumes().Get(ctx, "pvc-uid-1", metav1.GetOptions{})
		return err == nil
	})
	ask := func(size string) {
		t.Helper()
		ours, err := claims.Get(ctx, "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ours.Spec.VolumeName, ours.Status.Phase = "pvc-uid-1", corev1.ClaimBound
		ours.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
		if _, err := claims.Update(ctx, ours, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	status := func() corev1.PersistentVolumeClaimStatus {
		t.Helper()
		ours, err := claims.Get(ctx, "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return ours.Status
	}
	ask("4Gi")
	eventually(t, "it is reported", func() bool {
		c := status().Conditions
		return len(c) == 1 && c[0].Type == corev1.PersistentVolumeClaimControllerResizeError && c[0].Message == "4Gi is more than the 3Gi that a volume of class standard may have"
	})
	ask("2Gi")
	eventually(t, "it grows", func() bool {
		s := status()
		return s.Capacity.Storage().String() == "2Gi" && len(s.Conditions) == 0
	})
}

func TestClaimsOfOthersAreLeftAlone(t *testing.T) {
	ctx := t.Context()
	client := run(t, t.TempDir())
	for _, one := range []*corev1.PersistentVolumeClaim{
		claim("unmarked", "1Gi", nil),
		claim("theirs", "1Gi", map[string]string{forProvisioner: "example.com/other"}),
	} {
		if _, err := client.CoreV1().PersistentVolumeClaims("default").Create(ctx, one, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	made, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil || len(made.Items) != 0 {
		t.Errorf("made %v, %v", made.Items, err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("%s: not in time", what)
}
