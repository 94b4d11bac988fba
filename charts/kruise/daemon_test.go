// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestTheNodeAgentMayDoWhatItsCodeAsksFor(t *testing.T) {
	granted := get[*rbacv1.ClusterRole](t, render(t), "kruise-daemon-role").Rules
	found := 0
	err := filepath.WalkDir("../../nodeagent", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range marker.FindAllStringSubmatch(string(source), -1) {
			found++
			for _, resource := range strings.Split(match[2], ";") {
				for _, verb := range strings.Split(match[3], ";") {
					if !allowed(granted, strings.Trim(match[1], `"`), resource, verb) {
						t.Errorf("%s needs %s of %s in group %s, which no role grants", path, verb, resource, match[1])
					}
				}
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d markers: %v", found, err)
	}
}

func TestTheNodeAgent(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want bool
	}{
		{"by default", nil, true},
		{"without its gate", []string{"--set", "featureGates=KruiseDaemon=false"}, false},
		{"without all of its stage", []string{"--set", "featureGates=AllBeta=false"}, false},
		{"with its gate alone", []string{"--set", `featureGates=AllBeta=false\,KruiseDaemon=true`}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := render(t, tc.args...)
			if has[*appsv1.DaemonSet](r, "kruise-daemon") != tc.want || has[*corev1.ServiceAccount](r, "kruise-daemon") != tc.want {
				t.Errorf("want %t", tc.want)
			}
		})
	}
	t.Run("with values of its own", func(t *testing.T) {
		pod := get[*appsv1.DaemonSet](t, render(t, "-f", "testdata/daemon.yaml"), "kruise-daemon").Spec.Template.Spec
		c := pod.Containers[0]
		want := []string{"--v=5", "--addr=:10231", "--enable-pprof=false", "--pprof-addr=localhost:10232", "--socket-file=containerd/containerd.sock"}
		if !slices.Equal(c.Args, want) || c.Image != "private-registry.com/kruise-daemon:1.7.1" || c.Command[0] != "/kruise-daemon" {
			t.Errorf("%s runs %v %v", c.Image, c.Command, c.Args)
		}
		if got := pod.Volumes[0].HostPath.Path; got != "/run/k3s" || !c.VolumeMounts[0].ReadOnly {
			t.Errorf("sockets are at %s, mounted as %v", got, c.VolumeMounts[0])
		}
		if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "HTTPS_PROXY" }) || pod.NodeSelector["kubernetes.io/os"] != "linux" {
			t.Errorf("env %v, nodes %v", c.Env, pod.NodeSelector)
		}
		if got := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions; len(got) != 1 {
			t.Errorf("the affinity is %v", got)
		}
	})
	t.Run("with credential providers", func(t *testing.T) {
		mounts := func(r []string) map[string]string {
			pod := get[*appsv1.DaemonSet](t, render(t, r...), "kruise-daemon").Spec.Template.Spec
			from := map[string]string{}
			for _, v := range pod.Volumes {
				if v.HostPath != nil {
					from[v.Name] = v.HostPath.Path
				} else {
					from[v.Name] = "configMap " + v.ConfigMap.Name
				}
			}
			out := map[string]string{}
			for _, m := range pod.Containers[0].VolumeMounts {
				if !m.ReadOnly {
					t.Errorf("%s may be written", m.MountPath)
				}
				out[m.MountPath] = from[m.Name]
			}
			return out
		}
		const on = "daemon.credentialProvider.enable=true"
		for name, tc := range map[string]struct {
			values []string
			want   map[string]string
		}{
			"none": {nil, map[string]string{"/hostvarrun": "/var/run"}},
			"the documented names": {[]string{"--set", on}, map[string]string{
				"/hostvarrun": "/var/run", "/kruise/plugins": "/credential-provider-plugin", "/kruise/CredentialProviderPlugin.yaml": "configMap credential-provider-config",
			}},
			"names of one's own": {[]string{"--set", on + ",daemon.credentialProvider.hostPath=/opt/plugins,daemon.credentialProvider.configmap=logins,daemon.credentialProvider.awsCredentialsDir=/root/.aws"}, map[string]string{
				"/hostvarrun": "/var/run", "/kruise/plugins": "/opt/plugins", "/kruise/CredentialProviderPlugin.yaml": "configMap logins", "/root/.aws": "/root/.aws",
			}},
		} {
			if got := mounts(tc.values); !maps.Equal(got, tc.want) {
				t.Errorf("%s: got %v", name, got)
			}
		}
	})
	t.Run("with what a pod may do at least", func(t *testing.T) {
		pod := get[*appsv1.DaemonSet](t, render(t), "kruise-daemon").Spec.Template.Spec
		s := pod.Containers[0].SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("got %v", s)
		}
		if !pod.HostNetwork || pod.Tolerations[0].Operator != corev1.TolerationOpExists {
			t.Errorf("hostNetwork %t, tolerations %v", pod.HostNetwork, pod.Tolerations)
		}
	})
}

// A token that is taken from one node, and a user who permits a restart, are tried on
// an API server with what the chart makes.
func TestWhoWritesRequests(t *testing.T) {
	env, admin := apiserver.Serve(t)
	r := render(t)
	create := func(o client.Object) {
		t.Helper()
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(get[*rbacv1.ClusterRole](t, r, "kruise-daemon-role"))
	create(get[*rbacv1.ClusterRoleBinding](t, r, "kruise-daemon-rolebinding"))
	for _, name := range []string{"kruise-daemon-node", "kruise-restart-permits"} {
		create(get[*admissionv1.ValidatingAdmissionPolicy](t, r, name))
		create(get[*admissionv1.ValidatingAdmissionPolicyBinding](t, r, name))
	}
	request := func(name, node string) *kruise.ContainerRecreateRequest {
		o := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{kruise.ContainerRecreateRequestNodeNameKey: node}}}
		o.Spec.PodName, o.Spec.Containers = "web", []kruise.ContainerRecreateRequestContainer{{Name: "app"}}
		create(o)
		return o
	}
	image := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	create(image)
	elsewhere := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	create(elsewhere)
	mine, other := request("mine", "n1"), request("other", "n2")
	as := func(user string, extra map[string][]string) client.Client {
		t.Helper()
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}, Extra: extra}
		c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const daemon = "system:serviceaccount:kruise-system:kruise-daemon"
	agent := as(daemon, map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}})
	begin := func(c client.Client, o *kruise.ContainerRecreateRequest, phase string) error {
		return c.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+phase+`"}}`)))
	}
	refused := func(what, want string, try func() error) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if err = try(); err != nil { // admission policies are read a moment after they are written
				break
			}
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	refused("the token of n1 at an object of n2", "the node agent of n1 may write what is of its own node only", func() error { return begin(agent, other, "Recreating") })
	pulled := client.RawPatch(types.MergePatchType, []byte(`{"status":{"desired":1}}`))
	refused("the token of n1 at the images of n2", "the node agent of n1 may write what is of its own node only", func() error { return agent.Status().Patch(t.Context(), elsewhere.DeepCopy(), pulled) })
	if err := agent.Status().Patch(t.Context(), image.DeepCopy(), pulled); err != nil {
		t.Errorf("the token of n1 at the images of n1: %v", err)
	}
	probes := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	create(probes)
	others := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	create(others)
	result := client.RawPatch(types.MergePatchType, []byte(`{"status":{"podProbeStatuses":[{"name":"web","namespace":"default","uid":"u"}]}}`))
	refused("the token of n1 at the probes of n2", "the node agent of n1 may write what is of its own node only", func() error { return agent.Status().Patch(t.Context(), others.DeepCopy(), result) })
	if err := agent.Status().Patch(t.Context(), probes.DeepCopy(), result); err != nil {
		t.Errorf("the token of n1 at the probes of n1: %v", err)
	}
	refused("the token of n1 at what is probed", "cannot patch", func() error {
		return agent.Patch(t.Context(), probes.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"podProbes":[]}}`)))
	})
	refused("a token without a node", "the token of the node agent names no node", func() error { return begin(as(daemon, nil), mine, "Recreating") })
	if err := begin(agent, mine, "Recreating"); err != nil {
		t.Errorf("the token of n1 at an object of n1: %v", err)
	}
	refused("the token of n1 at the object itself", "cannot patch", func() error {
		return agent.Patch(t.Context(), mine.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
	})
	permitted := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"crr.regatta.sh/restart":"{\"app\":\"containerd://1\"}"}}}`))
	refused("a user who permits a restart", "the annotation crr.regatta.sh/restart is what the manager permits", func() error {
		// Dry runs, since an annotation that was let in too early would be no change any more.
		return admin.Patch(t.Context(), mine.DeepCopy(), permitted, client.DryRunAll)
	})
	if err := admin.Patch(t.Context(), mine.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))); err != nil {
		t.Errorf("a user who writes another annotation: %v", err)
	}
}

// Of pods an agent writes one annotation, on its own node.
func TestWhatTheNodeAgentWritesOnPods(t *testing.T) {
	env, admin := apiserver.Serve(t)
	r := render(t)
	create := func(o client.Object) {
		t.Helper()
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(get[*rbacv1.ClusterRole](t, r, "kruise-daemon-role"))
	create(get[*rbacv1.ClusterRoleBinding](t, r, "kruise-daemon-rolebinding"))
	create(get[*admissionv1.ValidatingAdmissionPolicy](t, r, "kruise-daemon-pods"))
	create(get[*admissionv1.ValidatingAdmissionPolicyBinding](t, r, "kruise-daemon-pods"))
	pod := func(name, node string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"shop.example/color": "blue"}, Finalizers: []string{"shop.example/wait"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "u1"}},
		}}
		p.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "web:1"}}}
		create(p)
		return p
	}
	mine, other, bare := pod("mine", "n1"), pod("other", "n2"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bare"}}
	bare.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "web:1"}}}
	create(bare)
	as := func(extra map[string][]string) client.Client {
		t.Helper()
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kruise-system:kruise-daemon", Groups: []string{"system:authenticated"}, Extra: extra}
		c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	agent := as(map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}})
	patch := func(c client.Client, p *corev1.Pod, kind types.PatchType, text string) error {
		return c.Patch(t.Context(), p.DeepCopy(), client.RawPatch(kind, []byte(text)))
	}
	const told = `{"metadata":{"annotations":{"apps.kruise.io/runtime-containers-meta":"{}"}}}`
	const elsewhere, more = "the node agent of n1 may write what is of its own node only", "of a pod the node agent may write the annotation apps.kruise.io/runtime-containers-meta only"
	for deadline := time.Now().Add(30 * time.Second); patch(agent, other, types.MergePatchType, told) == nil && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond) // admission policies are read a moment after they are written
	}
	for name, tc := range map[string]struct {
		client client.Client
		pod    *corev1.Pod
		kind   types.PatchType
		patch  string
		want   string
	}{
		"its annotation":                          {agent, mine, types.MergePatchType, told, ""},
		"the first annotation of a pod":           {agent, bare, types.MergePatchType, told, ""},
		"on another node":                         {agent, other, types.MergePatchType, told, elsewhere},
		"by a token without a node":               {as(nil), mine, types.MergePatchType, told, "the token of the node agent names no node"},
		"another annotation":                      {agent, mine, types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`, more},
		"the value of another annotation":         {agent, mine, types.MergePatchType, `{"metadata":{"annotations":{"shop.example/color":"red"}}}`, more},
		"without another annotation":              {agent, mine, types.MergePatchType, `{"metadata":{"annotations":{"shop.example/color":null}}}`, more},
		"a label":                                 {agent, mine, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, more},
		"the first label of a pod":                {agent, bare, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, more},
		"without a finalizer":                     {agent, mine, types.MergePatchType, `{"metadata":{"finalizers":null}}`, more},
		"another owner":                           {agent, mine, types.MergePatchType, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"x"}]}}`, more},
		"another image":                           {agent, mine, types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"main","image":"bad:1"}]}}`, more},
		"its annotation, and a label on the side": {agent, mine, types.MergePatchType, `{"metadata":{"labels":{"a":"b"},"annotations":{"apps.kruise.io/runtime-containers-meta":"{}"}}}`, more},
	} {
		err := patch(tc.client, tc.pod, tc.kind, tc.patch)
		if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if err := agent.Status().Patch(t.Context(), mine.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))); !apierrors.IsForbidden(err) {
		t.Errorf("the status: %v", err)
	}
	if err := agent.Delete(t.Context(), mine.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a deletion: %v", err)
	}
	another := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "another"}, Spec: *mine.Spec.DeepCopy()}
	if err := agent.Create(t.Context(), another); !apierrors.IsForbidden(err) {
		t.Errorf("a pod: %v", err)
	}
	if err := patch(admin, mine, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("another user: %v", err)
	}
}

func TestThePermissionsOnPodsGoWithTheirGate(t *testing.T) {
	for name, tc := range map[string]struct {
		gates string
		want  bool
	}{
		"by default":                {"", true},
		"without the gate":          {"DaemonWatchingPod=false", false},
		"without all of its stage":  {`AllBeta=false\,KruiseDaemon=true`, false},
		"with the gate of a stage":  {`AllBeta=false\,KruiseDaemon=true\,DaemonWatchingPod=true`, true},
		"with the gate, as a value": {"DaemonWatchingPod=true", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := render(t, "--set", "featureGates="+tc.gates)
			rules := get[*rbacv1.ClusterRole](t, r, "kruise-daemon-role").Rules
			if got := allowed(rules, "", "pods", "patch"); got != tc.want {
				t.Errorf("it may write pods: %t", got)
			}
			if got := has[*admissionv1.ValidatingAdmissionPolicy](r, "kruise-daemon-pods"); got != tc.want {
				t.Errorf("it is confined: %t", got)
			}
		})
	}
}

// A memory limit of Go's runtime that users set takes the place of the chart's: a variable that is there twice is merged wrongly.
func TestUsersSetTheMemoryLimitOfGo(t *testing.T) {
	r := render(t, "--set", "daemon.extraEnvs[0].name=GOMEMLIMIT,daemon.extraEnvs[0].value=90MiB")
	var got []string
	for _, variable := range get[*appsv1.DaemonSet](t, r, "kruise-daemon").Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "GOMEMLIMIT" {
			got = append(got, variable.Value)
		}
	}
	if !slices.Equal(got, []string{"90MiB"}) {
		t.Errorf("it is %v", got)
	}
}
