// SPDX-License-Identifier: Apache-2.0

// Package e2e brings real clusters up and takes them down again.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

func TestClusterComesUpAndGoesAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	// Both kinds of nodes as root, else the simulated ones alone.
	options := local.Options{Name: fmt.Sprintf("e2e-%d", os.Getpid()), Simulated: 2, Out: t.Output()}
	if os.Geteuid() == 0 {
		options.Real = 2
	}
	t.Cleanup(func() { goesAway(t, options.Name) })
	started := time.Now()
	cluster, err := local.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %s", time.Since(started).Round(time.Millisecond))
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a healthy cluster is used again", func(t *testing.T) {
		again, err := local.Up(t.Context(), options)
		if err != nil || !again.State.Created.Equal(cluster.State.Created) {
			t.Errorf("got another cluster, %v", err)
		}
		other := options
		other.Simulated++
		if _, err := local.Up(t.Context(), other); err == nil {
			t.Error("one of another shape is not refused")
		}
	})
	kinds := []string{simulated.KindSimulated}
	if options.Real > 0 {
		kinds = append(kinds, simulated.KindReal)
	}
	for _, kind := range kinds {
		t.Run("a pod on a "+kind+" node is updated in place", func(t *testing.T) { updateInPlace(t, client, kind) })
	}
	t.Run("a simulated node removes only pods that terminate", func(t *testing.T) { removeTerminating(t, cluster) })
	t.Run("a claim gets a volume", func(t *testing.T) { claimVolume(t, client) })
	t.Run("writes are counted by user", func(t *testing.T) { countWrites(t, cluster) })
	t.Run("a broken cluster is replaced", func(t *testing.T) {
		if err := cluster.Kill(t.Context(), "etcd"); err != nil {
			t.Fatal(err)
		}
		again, err := local.Up(t.Context(), options)
		if err != nil || again.State.Created.Equal(cluster.State.Created) {
			t.Errorf("got the same cluster, %v", err)
		}
	})
}

// updateInPlace changes the image of a pod with a readiness gate, and sees the
// node do its part of it.
func updateInPlace(t *testing.T, client kubernetes.Interface, kind string) {
	const gate = corev1.PodConditionType("InPlaceUpdateReady")
	ctx, grace := t.Context(), int64(1)
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	name := "on-" + kind
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{simulated.NodeLabel: kind},
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: gate}},
			Containers:                    []corev1.Container{{Name: "main", Image: "nginx:1.7.9"}},
			TerminationGracePeriodSeconds: &grace,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait := func(what string, condition func(*corev1.Pod) bool) *corev1.Pod {
		t.Helper()
		var pod *corev1.Pod
		eventually(t, what, func() bool {
			var err error
			pod, err = pods.Get(ctx, name, metav1.GetOptions{})
			return err == nil && condition(pod)
		})
		return pod
	}
	before := wait("it runs and is not ready", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && is(pod, corev1.ContainersReady) && !is(pod, corev1.PodReady)
	})
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": "True"}]}}`, gate)
	if _, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	wait("it becomes ready", func(pod *corev1.Pod) bool { return is(pod, corev1.PodReady) })
	image := `{"spec": {"containers": [{"name": "main", "image": "nginx:1.8"}]}}`
	if _, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(image), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	was := before.Status.ContainerStatuses[0]
	after := wait("its container restarts with the new image", func(pod *corev1.Pod) bool {
		container := pod.Status.ContainerStatuses[0]
		return container.RestartCount == was.RestartCount+1 && container.ImageID != was.ImageID && container.Ready
	})
	if after.Status.PodIP != before.Status.PodIP || after.UID != before.UID {
		t.Errorf("it is another pod: %s at %s", after.UID, after.Status.PodIP)
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes", func() bool {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err != nil
	})
}

// removeTerminating deletes a pod of a StatefulSet as KWOK does: by its name
// alone. The first deletes are dry runs, so that the pod is there for the last
// one, too, should the API server not know the policy yet.
func removeTerminating(t *testing.T, cluster *local.Cluster) {
	const name = "of-a-name-that-comes-back"
	ctx := t.Context()
	admin, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	config, err := cluster.RESTConfig(simulated.Kwok)
	if err != nil {
		t.Fatal(err)
	}
	kwok, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appsv1.StatefulSetPodNameLabel: name}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{simulated.NodeLabel: simulated.KindSimulated},
			Containers:   []corev1.Container{{Name: "main", Image: "nginx:1.7.9"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove := func(dryRun ...string) bool {
		now := int64(0)
		err := kwok.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now, DryRun: dryRun})
		if err != nil && !strings.Contains(err.Error(), "is not terminating") {
			t.Fatal(err)
		}
		return err == nil
	}
	eventually(t, "the removal of a pod that is not terminating is refused", func() bool { return !remove(metav1.DryRunAll) })
	if remove() {
		t.Fatal("a pod that is not terminating was deleted")
	}
	if err := admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pod that terminates is removed", func() bool {
		_, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func is(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func claimVolume(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	claims := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault)
	made, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is bound", func() bool {
		made, err = claims.Get(ctx, "data", metav1.GetOptions{})
		return err == nil && made.Status.Phase == corev1.ClaimBound
	})
	made.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	if _, err := claims.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it grows", func() bool {
		made, err = claims.Get(ctx, "data", metav1.GetOptions{})
		size := made.Status.Capacity[corev1.ResourceStorage]
		return err == nil && size.String() == "2Gi"
	})
}

func countWrites(t *testing.T, cluster *local.Cluster) {
	config, err := cluster.RESTConfig(credentials.Manager)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("written-%d", i)}}
		if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "three writes are counted", func() bool {
		counts, err := audit.Counts(cluster.State.AuditLog(), audit.Filter{User: credentials.Manager, Resource: "configmaps"})
		return err == nil && audit.Total(counts) == 3
	})
}

// goesAway takes the cluster down and looks for what it left behind.
func goesAway(t *testing.T, name string) {
	// The test's own context has ended when it cleans up.
	if err := local.Down(context.WithoutCancel(t.Context()), name, t.Output()); err != nil {
		t.Fatal(err)
	}
	dir, err := state.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	id := state.Identifier(dir)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
	if left, err := process.Find(dir); err != nil || len(left) > 0 {
		t.Errorf("processes are left: %v, %v", left, err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range interfaces {
		if strings.Contains(one.Name, id) {
			t.Errorf("an interface is left: %s", one.Name)
		}
	}
	for _, pattern := range []string{process.NetNSDir + "/*" + id + "*", "/sys/fs/cgroup/*" + id + "*", "/sys/fs/cgroup/*/*" + id + "*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	for _, file := range []string{"/proc/self/mounts", "/proc/net/route"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), id) || strings.Contains(string(content), dir) {
			t.Errorf("something of it is left in %s:\n%s", file, content)
		}
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("%s: not in time", what)
}
