// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// What only an API server shows: that it takes what is written to a claim, a smaller size after
// growth that failed too, and that a change of a claim is enough for the update to go on.
func TestAClaimGrowsOnAnAPIServer(t *testing.T) {
	env, c := apiserver.Serve(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: apiserver.Scheme(t), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rollout.AddIndexes(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	deps := reconcile.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorderFor("test"), Engine: testEngine(t)}
	if err := rollout.New(New(Gates{AutoResizePVC: true}), deps).SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	apiserver.Run(t, mgr)

	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	do(c.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "example.com/none", AllowVolumeExpansion: ptr.To(true)}))
	set := testSet(1, claims1Gi("fast", kruise.OnPodRollingUpdateVolumeClaimUpdateStrategyType))
	set.UID, set.Generation = "", 0
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.InPlaceIfPossiblePodUpdatePolicyType
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	do(c.Create(t.Context(), set))

	claim, pod := &corev1.PersistentVolumeClaim{}, &corev1.Pod{}
	claimKey, podKey := client.ObjectKey{Namespace: "shop", Name: "data-db-0"}, client.ObjectKey{Namespace: "shop", Name: "db-0"}
	apiserver.Eventually(t, "a pod and its claim", func() string {
		if err := c.Get(t.Context(), podKey, pod); err != nil {
			return err.Error()
		}
		if err := c.Get(t.Context(), claimKey, claim); err != nil {
			return err.Error()
		}
		return ""
	})
	has := func(size string, conditions ...corev1.PersistentVolumeClaimCondition) {
		t.Helper()
		do(c.Get(t.Context(), claimKey, claim))
		was := claim.DeepCopy()
		claim.Status.Phase, claim.Status.Conditions = corev1.ClaimBound, conditions
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		do(c.Status().Patch(t.Context(), claim, client.MergeFrom(was)))
	}
	asks := func(want, image string) {
		t.Helper()
		apiserver.Eventually(t, "the claim asks for "+want+" and the pod has "+image, func() string {
			do(c.Get(t.Context(), claimKey, claim))
			do(c.Get(t.Context(), podKey, pod))
			if got := claim.Spec.Resources.Requests.Storage().String(); got != want || pod.Spec.Containers[0].Image != image {
				return got + " " + pod.Spec.Containers[0].Image
			}
			return ""
		})
	}
	edit := func(edits ...func(*kruise.StatefulSet)) {
		t.Helper()
		do(c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		was := set.DeepCopy()
		for _, edit := range edits {
			edit(set)
		}
		do(c.Patch(t.Context(), set, client.MergeFrom(was)))
	}
	has("1Gi")

	edit(size("2Gi"), image("2"))
	asks("2Gi", "db:1")
	if got := claim.Annotations[kruise.OwnedByAdvancedStatefulSetKey]; got != "db" {
		t.Errorf("the claim is annotated with %q", got)
	}
	has("2Gi") // nothing else happens to the set or its pods
	asks("2Gi", "db:2")

	edit(size("10Gi"), image("3"))
	asks("10Gi", "db:2")
	has("2Gi", corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "the pool is full"})
	condition := func(kind kruise.WorkloadConditionType, want string) {
		t.Helper()
		apiserver.Eventually(t, fmt.Sprintf("condition %s", kind), func() string {
			do(c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			if got := rollout.FindCondition(set.Status.Conditions, string(kind)); got == nil || got.Message != want {
				return fmt.Sprint(set.Status.Conditions)
			}
			return ""
		})
	}
	condition(kruise.StatefulSetFailedUpdatePod, "pod db-0 is not updated: ControllerResizeError: the pool is full")
	edit(size("3Gi"))
	asks("3Gi", "db:2")
	has("3Gi")
	asks("3Gi", "db:3")

	edit(func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("slow")
		image("4")(set)
	})
	condition(kruise.StatefulSetVolumeClaimsDiffer, "Claim data-db-0: storage class fast, not slow, which Kubernetes never changes on a claim.")
	edit(func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimUpdateStrategy.Type = kruise.OnDeleteVolumeClaimUpdateStrategyType
	})
	asks("3Gi", "db:4")
}
