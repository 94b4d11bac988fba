// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/regatta-sh/regatta/test/apiserver"
)

func wantOpenShift(t *testing.T, r release) {
	t.Helper()
	for _, pod := range pods(t, r) {
		if s := pod.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || !*s.RunAsNonRoot {
			t.Errorf("%s has the user %v", pod.Containers[0].Name, s)
		}
	}
	scc := get[*unstructured.Unstructured](t, r, "kruise-daemon")
	agent := agentPod(t, r)
	if scc.GetKind() != "SecurityContextConstraints" || scc.Object["allowHostNetwork"] != agent.HostNetwork || scc.Object["allowPrivilegedContainer"] != false {
		t.Errorf("the constraints are %v", scc.Object)
	}
	volumes, _, err := unstructured.NestedStringSlice(scc.Object, "volumes")
	if err != nil || !slices.Contains(volumes, "hostPath") || !slices.Contains(volumes, "projected") {
		t.Errorf("volumes are %v: %v", volumes, err)
	}
	if o := agent.SecurityContext.SELinuxOptions; o == nil || o.Type != "spc_t" {
		t.Errorf("the agent runs as %v", o)
	}
	role, binding := get[*rbacv1.Role](t, r, "kruise-daemon-scc"), get[*rbacv1.RoleBinding](t, r, "kruise-daemon-scc")
	if rule := role.Rules[0]; rule.ResourceNames[0] != scc.GetName() || rule.Verbs[0] != "use" || binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != "kruise-daemon" {
		t.Errorf("%v is bound by %v", role.Rules, binding.Subjects)
	}
}

// On OpenShift no values file is needed where Helm sees the cluster, and values have their way.
func TestOpenShiftIsFoundOut(t *testing.T) {
	wantOpenShift(t, render(t, "--api-versions", sccAPI))
	for name, args := range map[string][]string{"by default": nil, "turned off": {"--api-versions", sccAPI, "--set", "openshift.enabled=false"}} {
		r := render(t, args...)
		if has[*unstructured.Unstructured](r, "kruise-daemon") || *pods(t, r)[0].SecurityContext.RunAsUser != 65534 || agentPod(t, r).SecurityContext.SELinuxOptions != nil {
			t.Errorf("%s it is an OpenShift", name)
		}
	}
	r := render(t, "--api-versions", sccAPI, "--set", "manager.runAsUser=1234,daemon.seLinuxOptions.level=s0")
	if got := agentPod(t, r).SecurityContext.SELinuxOptions; *pods(t, r)[0].SecurityContext.RunAsUser != 1234 || got.Type != "" || got.Level != "s0" {
		t.Errorf("the agent runs as %v", got)
	}
	if r := render(t, "--api-versions", sccAPI, "--set", "featureGates=KruiseDaemon=false"); has[*unstructured.Unstructured](r, "kruise-daemon") {
		t.Error("there are constraints for no agent")
	}
}

// OpenShift has the API server ask whether who makes an object that blocks the deletion of its owner may update the finalizers of the
// owner. These are the owners in the code of the manager.
func TestTheManagerMayNameOwnersOnOpenShift(t *testing.T) {
	env := apiserver.Start(t, func(env *envtest.Environment) {
		env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	})
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	admin, err := client.New(env.Config, client.Options{Scheme: apiserver.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := render(t, "--set", "featureGates=ResourceDistributionGate=true")
	for _, name := range []string{"kruise-manager-role", "kruise-distribution-role"} {
		role := get[*rbacv1.ClusterRole](t, r, name)
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "manager"}},
		}
		for _, o := range []client.Object{role, binding} {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "manager", Groups: []string{"system:authenticated"}}
	manager, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	apps, policy := schema.GroupVersion{Group: "apps.kruise.io", Version: "v1beta1"}, schema.GroupVersion{Group: "policy.kruise.io", Version: "v1alpha1"}
	owners := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Pod"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), policy.WithKind("PolicyBundle"), policy.WithKind("ClusterPolicyBundle")}
	for _, kind := range []string{"CloneSet", "StatefulSet", "DaemonSet", "BroadcastJob", "AdvancedCronJob", "ImageListPullJob", "UnitedDeployment", "SidecarSet", "ResourceDistribution"} {
		owners = append(owners, apps.WithKind(kind))
	}
	for _, owner := range owners {
		o := &appsv1.ControllerRevision{Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}
		o.Namespace, o.GenerateName = "default", "owned-"
		o.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: owner.GroupVersion().String(), Kind: owner.Kind, Name: "owner", UID: "u", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}
		apiserver.Eventually(t, owner.Kind+" as an owner", func() string {
			if err := manager.Create(t.Context(), o.DeepCopy(), client.DryRunAll); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}
