// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// changeover is a cluster that a release of OpenKruise is installed in.
type changeover struct {
	api        client.Client
	scheme     *runtime.Scheme
	kubeconfig string
	theirs     string // the folder of their chart
	ours       string
	values     []string // of ours, for a manager beside the cluster
}

func (c *changeover) helm(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := install.Helm(t, "", command, append(args, "--kubeconfig", c.kubeconfig)...)
	if err != nil {
		t.Fatalf("helm %s %s: %v\n%s", command, strings.Join(args, " "), err, out)
	}
	return out
}

// A release of OpenKruise in the middle of rollouts is changed over to Regatta by one helm
// upgrade and back by one helm rollback: no pod is written or replaced, and what a release
// leaves is what it would install afresh.
func TestChangingOver(t *testing.T) {
	env := apiserver.Start(t)
	c := &changeover{scheme: apiserver.Scheme(t), theirs: openkruise.Chart(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(c.kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	c.ours = filepath.Join(root, "charts", "kruise")
	c.values = []string{"--set", "manager.replicas=0,featureGates=ImagePullJobGate=true,webhookConfiguration.url=https://localhost:" + port}

	c.helm(t, "install", "kruise", c.theirs, "--set", "webhookConfiguration.installed=false")
	if c.api, err = client.New(env.Config, client.Options{Scheme: c.scheme}); err != nil {
		t.Fatal(err)
	}
	c.populate(t)
	c.helm(t, "upgrade", "kruise", c.theirs, "--set", "webhookConfiguration.installed=true")
	c.serveTheirs(t, env.Config)
	before := c.running(t)
	if len(before) < 30 {
		t.Fatalf("there are %d objects: %v", len(before), before)
	}

	t.Run("what keeps pods keeps it from being uninstalled", func(t *testing.T) {
		var want []string
		for _, resource := range []string{"clonesets", "statefulsets", "daemonsets", "broadcastjobs", "advancedcronjobs", "uniteddeployments"} {
			want = append(want, "there still exists some "+resource+" in the cluster")
		}
		if err := CheckUninstall(t.Context(), env.Config); err == nil || err.Error() != strings.Join(want, "; ") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("over", func(t *testing.T) {
		c.helm(t, "upgrade", append([]string{"kruise", c.ours}, c.values...)...)
		c.asInstalled(t, c.ours, c.values...)
		c.gone(t, c.theirs, c.ours, c.values, nil)
	})
	t.Run("the manager takes over", func(t *testing.T) {
		p := startManager(t, env.KubeConfig, []string{"WEBHOOK_PORT=" + port, "WEBHOOK_HOST=localhost"}, "--feature-gates=ImagePullJobGate=true")
		eventually(t, "ready", p.ready)
		eventually(t, "leading", func() bool { return p.leads() == "1" })
		// An object that is changed now is seen after all that were there before.
		for _, kind := range []string{"CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "SidecarSet"} {
			c.touch(t, kind)
		}
		c.stays(t, before)
		if err := p.stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("back", func(t *testing.T) {
		c.helm(t, "rollback", "kruise", "2")
		c.asInstalled(t, c.theirs)
		// The API server of a whole cluster deletes what an object owned that is gone; and
		// policies of users outlive a release.
		c.gone(t, c.ours, c.theirs, nil, func(o *unstructured.Unstructured) bool {
			return strings.HasSuffix(o.GetName(), "policybundles.policy.kruise.io")
		})
		c.stays(t, before)
	})
}

// populate makes what OpenKruise left in the middle of rollouts, on nodes.
func (c *changeover) populate(t *testing.T) {
	t.Helper()
	for i := 1; i <= 4; i++ {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%d", i)}}}
		if err := c.api.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		n.Spec.Taints = nil // of the API server, for a node that is not ready yet
		if err := c.api.Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := c.api.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, of := range []string{"cloneset", "statefulset", "daemonset", "uniteddeployment"} {
		objects = append(objects, openkruise.Objects(t, c.scheme, filepath.Join("..", of, "testdata", "openkruise", "during.yaml"))...)
	}
	for _, of := range []string{"workloadspread", "persistentpodstate", "nodepodprobe", "imagepulljob"} {
		objects = append(objects, openkruise.Objects(t, c.scheme, filepath.Join("..", of, "testdata", "openkruise.yaml"))...)
	}
	objects = append(objects, openkruise.Stage(t, c.scheme, filepath.Join("..", "sidecarset", "testdata", "openkruise.yaml"), "during")...)
	openkruise.Put(t, c.api, objects)
	template := map[string]any{"spec": map[string]any{"restartPolicy": "Never", "nodeSelector": map[string]any{"none": "has"}, "containers": []any{map[string]any{"name": "main", "image": "busybox:1.36"}}}}
	job := map[string]any{"template": template}
	for kind, spec := range map[string]map[string]any{
		"BroadcastJob":    job,
		"AdvancedCronJob": {"schedule": "0 0 1 1 *", "paused": true, "template": map[string]any{"broadcastJobTemplate": map[string]any{"spec": job}}},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "spec": spec}}
		o.SetNamespace("shop")
		o.SetName("nowhere")
		if err := c.api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// serveTheirs writes what a manager of OpenKruise does where it serves webhooks.
func (c *changeover) serveTheirs(t *testing.T, config *rest.Config) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-webhook-certs"}}
	encoded := func(pem []byte) string { return base64.StdEncoding.EncodeToString(pem) }
	cert, key, ca := encoded(config.CertData), encoded(config.KeyData), encoded(config.CAData)
	data, err := json.Marshal(map[string]any{"data": map[string]string{"ca-cert.pem": ca, "ca-key.pem": key, "cert.pem": cert, "tls.crt": cert, "key.pem": key, "tls.key": key}})
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, data)
	if err := c.api.Patch(t.Context(), secret, patch); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("admissionregistration.k8s.io/v1")
		o.SetKind(kind)
		name := "kruise-" + strings.ToLower(strings.TrimSuffix(kind, "WebhookConfiguration")) + "-webhook-configuration"
		if err := c.api.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
			t.Fatal(err)
		}
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		kept, err := yaml.Marshal(hooks)
		if err != nil {
			t.Fatal(err)
		}
		o.SetAnnotations(map[string]string{"template": string(kept), "meta.helm.sh/release-name": "kruise", "meta.helm.sh/release-namespace": "default"})
		if err := c.api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// running is what must stay: each pod, claim and revision with its UID, and of pods
// everything that makes a kubelet act.
func (c *changeover) running(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, gvk := range []struct{ version, kind string }{
		{"v1", "Pod"}, {"v1", "PersistentVolumeClaim"}, {"apps/v1", "ControllerRevision"}, {"apps.kruise.io/v1beta1", "CloneSet"},
		{"apps.kruise.io/v1beta1", "StatefulSet"}, {"apps.kruise.io/v1beta1", "DaemonSet"}, {"apps.kruise.io/v1beta1", "UnitedDeployment"},
		{"apps.kruise.io/v1beta1", "SidecarSet"}, {"apps.kruise.io/v1beta1", "WorkloadSpread"}, {"apps.kruise.io/v1beta1", "ImagePullJob"},
		{"apps.kruise.io/v1beta1", "PersistentPodState"}, {"apps.kruise.io/v1alpha1", "PodProbeMarker"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(gvk.version)
		list.SetKind(gvk.kind + "List")
		if err := c.api.List(t.Context(), list, client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			text := fmt.Sprintf("uid %s", o.GetUID())
			if gvk.kind == "Pod" {
				containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
				statuses, _, _ := unstructured.NestedSlice(o.Object, "status", "containerStatuses")
				for _, s := range statuses {
					text += fmt.Sprintf(", %v restarted %v times", s.(map[string]any)["name"], s.(map[string]any)["restartCount"])
				}
				text += fmt.Sprintf(", generation %d, deleted %v, containers %v", o.GetGeneration(), o.GetDeletionTimestamp(), containers)
			}
			out[gvk.kind+" "+o.GetName()] = text
		}
	}
	return out
}

// stays checks that all that was there is, as it was.
func (c *changeover) stays(t *testing.T, before map[string]string) {
	t.Helper()
	now := c.running(t)
	for name, was := range before {
		if now[name] != was {
			t.Errorf("%s\nwas %s\nis  %s", name, was, now[name])
		}
	}
	for name := range now {
		// Not all revisions were dumped.
		if before[name] == "" && !strings.HasPrefix(name, "ControllerRevision ") {
			t.Errorf("%s is new", name)
		}
	}
}

// touch changes an annotation of each object of a kind, and waits until its status is of
// the generation that the object has.
func (c *changeover) touch(t *testing.T, kind string) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1beta1")
	list.SetKind(kind + "List")
	if err := c.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Errorf("there is no %s", kind)
	}
	for i := range list.Items {
		o := &list.Items[i]
		// revisionHistoryLimit makes a generation, and no change to pods.
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"revisionHistoryLimit":9}}`))
		if err := c.api.Patch(t.Context(), o, patch); err != nil {
			t.Fatalf("changing %s %s: %v", kind, o.GetName(), err)
		}
		want := o.GetGeneration()
		eventually(t, kind+" "+o.GetName()+" is observed", func() bool {
			if err := c.api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return seen >= want
		})
	}
}

// rendered are the objects of a chart.
func (c *changeover) rendered(t *testing.T, chart string, values ...string) []*unstructured.Unstructured {
	t.Helper()
	text, err := install.Helm(t, "", "template", append([]string{"kruise", chart, "--kube-version", "1.36.0", "--no-hooks"}, values...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// asInstalled checks that each object of a chart is in the cluster as the chart has it: to
// replace it would change nothing but what managers fill in.
func (c *changeover) asInstalled(t *testing.T, chart string, values ...string) {
	t.Helper()
	for _, want := range c.rendered(t, chart, values...) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(want.GroupVersionKind())
		if err := c.api.Get(t.Context(), client.ObjectKeyFromObject(want), live); err != nil {
			t.Errorf("%s %s: %v", want.GetKind(), want.GetName(), err)
			continue
		}
		fresh := want.DeepCopy()
		fresh.SetUID(live.GetUID())
		fresh.SetResourceVersion(live.GetResourceVersion())
		if err := c.api.Update(t.Context(), fresh, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %v", want.GetKind(), want.GetName(), err)
			continue
		}
		if diff := cmp.Diff(shape(fresh), shape(live)); diff != "" {
			t.Errorf("%s %s, installed afresh (-) and changed over (+):\n%s", want.GetKind(), want.GetName(), diff)
		}
	}
}

// shape is what a chart says of an object.
func shape(o *unstructured.Unstructured) map[string]any {
	out := o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "namespace"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	unstructured.RemoveNestedField(out.Object, "data") // of the secret, by the manager
	withoutCA(out.Object)
	annotations := out.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, "meta.helm.sh/") || strings.HasPrefix(key, "deprecated.daemonset") || strings.HasPrefix(key, "deployment.kubernetes.io") {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	out.SetAnnotations(annotations)
	labels := out.GetLabels()
	delete(labels, "app.kubernetes.io/managed-by")
	delete(labels, "kubernetes.io/metadata.name")
	if len(labels) == 0 {
		labels = nil
	}
	out.SetLabels(labels)
	return out.Object
}

// withoutCA takes away the certificates of CAs, wherever they are, which managers write.
func withoutCA(of any) {
	switch of := of.(type) {
	case map[string]any:
		delete(of, "caBundle")
		for _, v := range of {
			withoutCA(v)
		}
	case []any:
		for _, v := range of {
			withoutCA(v)
		}
	}
}

// gone checks that what only the first chart has is not in the cluster.
func (c *changeover) gone(t *testing.T, first, second string, values []string, but func(*unstructured.Unstructured) bool) {
	t.Helper()
	name := func(o *unstructured.Unstructured) string {
		return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	stays := map[string]bool{}
	for _, o := range c.rendered(t, second, values...) {
		stays[name(o)] = true
	}
	gone := 0
	for _, o := range c.rendered(t, first) {
		if stays[name(o)] || but != nil && but(o) {
			continue
		}
		gone++
		if err := c.api.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) && o.GetDeletionTimestamp() == nil {
			t.Errorf("%s is left: %v", name(o), err)
		}
	}
	t.Logf("%d objects are gone", gone)
}
