// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preview"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/set"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/terminal"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

// createFleet creates a CloneSet of four pods, on two nodes in two zones, as it is when its last rollout is complete.
func createFleet(t *testing.T, c client.Client, policy kruise.PodUpdatePolicyType, edits ...func(*kruise.CloneSet)) {
	t.Helper()
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, zone := range []string{"a", "b"} {
		create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
	}
	labels := map[string]string{"app": "web"}
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: kruise.CloneSetSpec{
		Replicas: ptr.To(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}},
		}},
		UpdateStrategy: kruise.CloneSetUpdateStrategy{Type: kruise.RollingUpdateCloneSetUpdateStrategyType, RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: policy, MaxUnavailable: ptr.To(intstr.FromInt32(2)), Partition: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(0)),
		}},
	}}
	for _, edit := range edits {
		edit(set)
	}
	create(set)
	data, err := revision.EncodeTemplate(&set.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	owner := *metav1.NewControllerRef(set, kruise.GroupVersion.WithKind("CloneSet"))
	create(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       runtime.RawExtension{Raw: data}, Revision: 1,
	})
	began := time.Now().Add(-time.Hour)
	for i := range 4 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("web-%c", 'a'+i), OwnerReferences: []metav1.OwnerReference{owner},
				Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "web-1", "apps.kruise.io/cloneset-instance-id": fmt.Sprint(i)},
			},
			Spec: corev1.PodSpec{
				NodeName: "node-" + string(rune('a'+i%2)), Containers: set.Spec.Template.Spec.Containers,
				ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}},
			},
		}
		maps.Copy(pod.Labels, set.Spec.Template.Labels)
		create(pod)
		ready := metav1.NewTime(began.Add(12 * time.Second))
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(began)),
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ready}, {Type: "InPlaceUpdateReady", Status: corev1.ConditionTrue, LastTransitionTime: ready}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "nginx:1", ImageID: "nginx@1", Ready: true}},
		}
		if err := c.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	set.Status = kruise.CloneSetStatus{ObservedGeneration: set.Generation, Replicas: 4, ReadyReplicas: 4, AvailableReplicas: 4, UpdatedReplicas: 4, UpdatedReadyReplicas: 4, UpdatedAvailableReplicas: 4, CurrentRevision: "web-1", UpdateRevision: "web-1"}
	if err := c.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

func previewImage(t *testing.T, user *terminal.Terminal) terminal.Result {
	t.Helper()
	return user.TypeCommand(t, set.NewCommand(preview.New(policies.Builtin)), "image", "clone/web", "main=nginx:2", "--preview")
}

func TestThePreviewTellsWhatWouldChangeAndChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		policy kruise.PodUpdatePolicyType
		want   string
	}{
		"in place":    {kruise.InPlaceIfPossiblePodUpdatePolicyType, "4 pods would change in place, within "},
		"by new pods": {kruise.RecreatePodUpdatePolicyType, "4 pods would be recreated, within "},
	} {
		t.Run(name, func(t *testing.T) {
			user := terminal.NewTerminal(t, &api)
			createFleet(t, user, tc.policy)
			user.BeforeRequests(t, func(r *http.Request) {
				if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != "All" {
					t.Errorf("a preview sends %s %s", r.Method, r.URL)
				}
			})
			got := previewImage(t, user)
			if got.Code != exit.Fine || !strings.HasPrefix(got.Out, tc.want) || !strings.Contains(got.Out, "ready after 12s") {
				t.Errorf("it ends with %d and prints\n%s\n%s\nwant it to begin with %q", got.Code, got.Out, got.Err, tc.want)
			}
			if !strings.Contains(got.Out, "zone a 1, b 1") && !strings.Contains(got.Out, "zone a 2") {
				t.Errorf("the waves name no zones:\n%s", got.Out)
			}
			live := &kruise.CloneSet{}
			if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, live); err != nil {
				t.Fatal(err)
			}
			if image := live.Spec.Template.Spec.Containers[0].Image; image != "nginx:1" {
				t.Errorf("the image is %s after a preview", image)
			}
		})
	}
}

func TestThePreviewTellsWhatARolloutWaitsFor(t *testing.T) {
	user := terminal.NewTerminal(t, &api)
	createFleet(t, user, kruise.RecreatePodUpdatePolicyType)
	budget := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: policy.PodUnavailableBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MaxUnavailable: ptr.To(intstr.FromInt32(0)),
	}}
	if err := user.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	got := previewImage(t, user)
	if got.Code != exit.Fine || !strings.HasPrefix(got.Out, "no pod changes, since the rollout waits\n") || !strings.Contains(got.Out, "budget web") {
		t.Errorf("it ends with %d and prints\n%s\n%s", got.Code, got.Out, got.Err)
	}
}

func TestAPreviewOfAnotherKindIsRefused(t *testing.T) {
	user := terminal.NewTerminal(t, &api)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}}},
	}}
	if err := user.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	got := user.TypeCommand(t, set.NewCommand(preview.New(policies.Builtin)), "image", "deployment/web", "main=nginx:2", "--preview")
	if got.Code != exit.Usage || !strings.Contains(got.Err, "--preview simulates CloneSets") {
		t.Errorf("it ends with %d and prints\n%s\n%s", got.Code, got.Out, got.Err)
	}
}

// keepRevision keeps a revision of a bundle that holds every rollout with a message, as the manager does.
func keepRevision(t *testing.T, c client.Client, of v1alpha1.AnyPolicyBundle, namespace, message string) *v1alpha1.PolicyArtifact {
	t.Helper()
	content := "package extend.rollout.stop\n\nhold contains {\"reason\": \"Stopped\", \"message\": \"" + message + "\"}\n"
	b, err := bundle.FromFiles(of.GetName(), map[string]string{"stop.rego": content})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := b.BuildArchive(&archive, bundle.Build{}); err != nil {
		t.Fatal(err)
	}
	kept, err := bundlerevision.Store{Client: c, Reader: c, Namespace: namespace}.SaveArchive(t.Context(), of, archive.Bytes(), "files")
	if err != nil {
		t.Fatal(err)
	}
	return &v1alpha1.PolicyArtifact{
		Revision: bundle.ShortRevision(b.Revision), Content: b.Revision, Digest: bundlerevision.ArchiveDigest(archive.Bytes()),
		Reference: "files", KeptIn: kept, Generation: 1, Time: metav1.Now(),
	}
}

func TestThePreviewAsksTheBundlesThatDecideAboutTheNamespace(t *testing.T) {
	const message = "Nothing moves today."
	canaryOf := func(namespaces ...string) func(*v1alpha1.PolicyBundleStatus, *v1alpha1.PolicyArtifact) {
		return func(s *v1alpha1.PolicyBundleStatus, a *v1alpha1.PolicyArtifact) {
			a.Mode, a.Namespaces = v1alpha1.PolicyModeCanary, namespaces
			s.Candidate = a
		}
	}
	for name, tc := range map[string]struct {
		tenant bool
		stage  func(*v1alpha1.PolicyBundleStatus, *v1alpha1.PolicyArtifact)
		holds  bool
	}{
		"one of the platform":           {false, func(s *v1alpha1.PolicyBundleStatus, a *v1alpha1.PolicyArtifact) { s.Active = a }, true},
		"one of the namespace":          {true, func(s *v1alpha1.PolicyBundleStatus, a *v1alpha1.PolicyArtifact) { s.Active = a }, true},
		"a canary in the namespace":     {false, canaryOf("default"), true},
		"a canary in another namespace": {false, canaryOf("elsewhere"), false},
		"a shadow, which decides nothing": {false, func(s *v1alpha1.PolicyBundleStatus, a *v1alpha1.PolicyArtifact) {
			a.Mode = v1alpha1.PolicyModeShadow
			s.Candidate = a
		}, false},
		"one that is withheld": {false, func(s *v1alpha1.PolicyBundleStatus, a *v1alpha1.PolicyArtifact) { s.Withheld = a }, true},
	} {
		t.Run(name, func(t *testing.T) {
			user := terminal.NewTerminal(t, &api)
			createFleet(t, user, kruise.InPlaceIfPossiblePodUpdatePolicyType)
			source, namespace := v1alpha1.PolicySource{Files: map[string]v1alpha1.FileText{"stop.rego": "package extend.rollout.stop\n"}}, "kruise-system"
			of := v1alpha1.AnyPolicyBundle(&v1alpha1.ClusterPolicyBundle{Spec: v1alpha1.ClusterPolicyBundleSpec{PolicySource: source}})
			if tc.tenant {
				namespace = "default"
				of = &v1alpha1.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: v1alpha1.PolicyBundleSpec{PolicySource: source}}
			} else if err := user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
			of.SetName("stop")
			if err := user.Create(t.Context(), of); err != nil {
				t.Fatal(err)
			}
			tc.stage(of.GetStatus(), keepRevision(t, user, of, namespace, message))
			of.GetStatus().ObservedGeneration = of.GetGeneration()
			if err := user.Status().Update(t.Context(), of); err != nil {
				t.Fatal(err)
			}
			got := previewImage(t, user)
			held := strings.HasPrefix(got.Out, "no pod changes, since the rollout waits\n")
			if got.Code != exit.Fine || held != tc.holds || !tc.holds && !strings.HasPrefix(got.Out, "4 pods would change in place") {
				t.Errorf("it ends with %d and prints\n%s\n%s", got.Code, got.Out, got.Err)
			}
			if withheld := of.GetStatus().Withheld != nil; tc.holds && !withheld && !strings.Contains(got.Out, message) {
				t.Errorf("it does not say why:\n%s", got.Out)
			}
		})
	}
}

func TestThePreviewOfUnusualCloneSets(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*kruise.CloneSet)
		want string
	}{
		"paused": {func(s *kruise.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true }, "no pod changes, since the rollout waits\n"},
		"with a hook before a pod is deleted": {func(s *kruise.CloneSet) {
			s.Spec.Template.Labels["hooked"] = "true"
			s.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hooked": "true"}}}
			s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
		}, "4 pods would be recreated, within "},
	} {
		t.Run(name, func(t *testing.T) {
			user := terminal.NewTerminal(t, &api)
			createFleet(t, user, kruise.InPlaceIfPossiblePodUpdatePolicyType, tc.edit)
			if got := previewImage(t, user); got.Code != exit.Fine || !strings.HasPrefix(got.Out, tc.want) {
				t.Errorf("it ends with %d and prints\n%s\n%s\nwant it to begin with %q", got.Code, got.Out, got.Err, tc.want)
			}
		})
	}
}

func TestThePreviewOfACloneSetWithoutPods(t *testing.T) {
	user := terminal.NewTerminal(t, &api)
	createFleet(t, user, kruise.InPlaceIfPossiblePodUpdatePolicyType)
	if err := user.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if got := previewImage(t, user); got.Code != exit.Fine || got.Out != "no pod changes: there is none\n" {
		t.Errorf("it ends with %d and prints\n%s\n%s", got.Code, got.Out, got.Err)
	}
}
