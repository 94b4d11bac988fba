// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestDistributionIsOffUnlessItsGateIsOn(t *testing.T) {
	for _, tc := range []struct {
		gates string
		want  bool
	}{
		{"", false},
		{"ResourceDistributionGate=true", true},
		{"AllBeta=true", true},
		{`AllBeta=true\,ResourceDistributionGate=false`, false},
		{`AllBeta=false\,ResourceDistributionGate=true`, true},
	} {
		if got := has[*rbacv1.ClusterRole](render(t, "--set", "featureGates="+tc.gates), "kruise-distribution-role"); got != tc.want {
			t.Errorf("with %q: %t", tc.gates, got)
		}
	}
}

// With the permissions of the manager, objects of users are tried on an API server with
// what the chart makes.
func TestTheManagerWritesCopiesOnly(t *testing.T) {
	env, admin := apiserver.Serve(t)
	r := render(t, "--set", "featureGates=ResourceDistributionGate=true")
	create := func(o client.Object) {
		t.Helper()
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range get[*rbacv1.ClusterRole](t, r, "kruise-distribution-role").Rules {
		for _, verb := range rule.Verbs {
			if rule.Resources[0] == "secrets" && (verb == "get" || verb == "list" || verb == "watch") {
				t.Errorf("it may %s secrets", verb)
			}
		}
	}
	create(get[*rbacv1.ClusterRole](t, r, "kruise-distribution-role"))
	create(get[*rbacv1.ClusterRoleBinding](t, r, "kruise-distribution-rolebinding"))
	create(get[*admissionv1.ValidatingAdmissionPolicy](t, r, "kruise-distribution"))
	create(get[*admissionv1.ValidatingAdmissionPolicyBinding](t, r, "kruise-distribution"))
	secret := func(name string, owners ...metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: owners}, StringData: map[string]string{"key": "x"}}
	}
	owner := func(uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "ResourceDistribution", Name: "d", UID: uid, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	}
	theirs, copied := secret("theirs"), secret("copied", owner("1"))
	create(theirs)
	create(copied)
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kruise-system:kruise-manager", Groups: []string{"system:authenticated"}}
	manager, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, try func() error) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if err = try(); err != nil { // admission policies are read a moment after they are written
				break
			}
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the manager may write what a ResourceDistribution owns, and nothing else") {
			t.Errorf("%s: %v", what, err)
		}
	}
	nothing := client.RawPatch(types.MergePatchType, []byte(`{}`))
	refused("reading another's Secret by a patch that changes nothing", func() error { return manager.Patch(t.Context(), theirs.DeepCopy(), nothing) })
	refused("creating a Secret that nothing owns", func() error { return manager.Create(t.Context(), secret("new"), client.DryRunAll) })
	refused("deleting another's Secret", func() error { return manager.Delete(t.Context(), theirs.DeepCopy(), client.DryRunAll) })
	refused("taking a Secret for its own", func() error {
		o := theirs.DeepCopy()
		o.OwnerReferences = []metav1.OwnerReference{owner("1")}
		return manager.Update(t.Context(), o)
	})
	refused("giving a copy to another distribution", func() error {
		o := copied.DeepCopy()
		o.OwnerReferences = []metav1.OwnerReference{owner("2")}
		return manager.Update(t.Context(), o)
	})
	refused("a ConfigMap that nothing owns", func() error {
		return manager.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}}, client.DryRunAll)
	})
	barrier := func(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: owners}}
	}
	pod := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "1"}
	create(barrier("web-barrier", metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "other", UID: "2"}))
	create(barrier("app-barrier"))
	refused("taking another's ConfigMap for the barrier of a pod", func() error { return manager.Update(t.Context(), barrier("web-barrier", pod)) })
	refused("a ConfigMap that is no pod's barrier", func() error { return manager.Update(t.Context(), barrier("app-barrier", pod)) })
	if err := admin.Delete(t.Context(), barrier("web-barrier")); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"reading a copy":  func() error { return manager.Patch(t.Context(), copied.DeepCopy(), nothing) },
		"creating a copy": func() error { return manager.Create(t.Context(), secret("another", owner("1"))) },
		"deleting a copy": func() error { return manager.Delete(t.Context(), copied.DeepCopy(), client.DryRunAll) },
		"the barrier of a pod": func() error {
			if err := manager.Create(t.Context(), barrier("web-barrier", pod)); err != nil {
				return err
			}
			restored := pod
			restored.Name = "app"
			if err := manager.Update(t.Context(), barrier("app-barrier", restored)); err != nil {
				return err
			}
			opened := barrier("web-barrier", pod)
			opened.Data = map[string]string{"p_0": "true"}
			return manager.Update(t.Context(), opened)
		},
	} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The manager may write ConfigMaps whatever its gates are, so that the policy that confines it is always there.
func TestTheManagerIsConfinedWithAnyGate(t *testing.T) {
	for _, gates := range []string{"", "ResourceDistributionGate=true", "AllBeta=false", "AllAlpha=true"} {
		r := render(t, "--set", "featureGates="+gates)
		if !has[*admissionv1.ValidatingAdmissionPolicy](r, "kruise-distribution") || !has[*admissionv1.ValidatingAdmissionPolicyBinding](r, "kruise-distribution") {
			t.Errorf("with %q nothing confines what the manager writes", gates)
		}
	}
}

func TestNamespaces(t *testing.T) {
	const level = "pod-security.kubernetes.io/enforce"
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"with node agents":        {nil, "privileged"},
		"on the network of nodes": {[]string{"--set", "featureGates=KruiseDaemon=false,manager.hostNetwork=true"}, "privileged"},
		"without any of the two":  {[]string{"--set", "featureGates=KruiseDaemon=false"}, "restricted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := get[*corev1.Namespace](t, render(t, tc.args...), "kruise-system").Labels[level]; got != tc.want {
				t.Errorf("the namespace enforces %q, want %s", got, tc.want)
			}
		})
	}
	secrets := get[*corev1.Namespace](t, render(t), "kruise-daemon-config")
	if secrets.Labels[level] != "restricted" {
		t.Errorf("the namespace of pull secrets enforces %q", secrets.Labels[level])
	}
	if secrets.Annotations[keep] != "keep" {
		t.Error("Helm deletes the namespace of pull secrets, and with it the secrets of users")
	}
}
