// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	revisions "github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/terminal"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

// podTemplate is a template with fields that the API server and the controllers complete.
const podTemplate = `
metadata: {labels: {app: web}, annotations: {note: "1"}}
spec:
  terminationGracePeriodSeconds: 5
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
  containers:
  - {name: main, image: "web:1", env: [{name: A, value: "1"}], resources: {limits: {cpu: 1000m}}, ports: [{containerPort: 80}]}
  - {name: log, image: "log:1"}
`

// indent puts a text below a field.
func indent(text string, columns int) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", columns))
}

// samples are objects of all kinds with revisions, by the word of the command line.
var samples = map[string]string{
	"clone":       withTemplate("apps.kruise.io/v1beta1", "CloneSet", "replicas: 10"),
	"asts":        withTemplate("apps.kruise.io/v1beta1", "StatefulSet", "replicas: 10"),
	"ads":         withTemplate("apps.kruise.io/v1beta1", "DaemonSet", ""),
	"deployment":  withTemplate("apps/v1", "Deployment", "replicas: 10"),
	"statefulset": withTemplate("apps/v1", "StatefulSet", "replicas: 10\n  serviceName: web"),
	"daemonset":   withTemplate("apps/v1", "DaemonSet", ""),
	"ud": `
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {namespace: default, name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}]}
  template:
    cloneSetTemplate:
      metadata: {labels: {app: web}}
      spec:
        selector: {matchLabels: {app: web}}
        template:` + indent(podTemplate, 10) + "\n",
	"sidecarset": `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - {name: main, image: "web:1", podInjectPolicy: AfterAppContainer, shareVolumePolicy: {type: enabled}}
  volumes: [{name: scratch, emptyDir: {}}]
`,
}

func withTemplate(version, kind, fields string) string {
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {namespace: default, name: web}
spec:
  %s
  selector: {matchLabels: {app: web}}
  template:%s
`, version, kind, fields, indent(podTemplate, 4))
}

// printed are what output calls the objects of samples.
var printed = map[string]string{
	"clone": "cloneset.apps.kruise.io/web", "asts": "statefulset.apps.kruise.io/web", "ads": "daemonset.apps.kruise.io/web",
	"ud": "uniteddeployment.apps.kruise.io/web", "sidecarset": "sidecarset.apps.kruise.io/web",
	"deployment": "deployment.apps/web", "statefulset": "statefulset.apps/web", "daemonset": "daemonset.apps/web",
}

// shop is a cluster, a user who types commands, and the controllers as far as they record revisions.
type shop struct{ *terminal.Terminal }

func newShop(t *testing.T) *shop {
	t.Helper()
	return &shop{terminal.NewTerminal(t, &api)}
}

// typed runs a subcommand of rollout. Its words are separated by blanks.
func (s *shop) typed(t *testing.T, words string) terminal.Result {
	t.Helper()
	return s.TypeCommand(t, NewCommand(nil), strings.Fields(words)...)
}

// wants runs a subcommand and compares all of its output.
func (s *shop) wants(t *testing.T, words string, code int, out, err string) {
	t.Helper()
	got := s.typed(t, words)
	if diff := cmp.Diff(terminal.Result{Out: out, Err: err, Code: code}, terminal.Result{Out: got.Out, Err: got.Err, Code: got.Code}); diff != "" {
		t.Errorf("regatta rollout %s (-want +got)\n%s", words, diff)
	}
}

// read reads an object again.
func (s *shop) read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := terminal.ParseObject(t, text)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// createSample makes an object of samples until the test ends, and then deletes its revisions too.
func (s *shop) createSample(t *testing.T, word string) {
	t.Helper()
	s.CreateObjects(t, samples[word])
	t.Cleanup(func() {
		ctx := context.Background()
		_ = s.Delete(ctx, terminal.ParseObject(t, samples[word]))
		for _, namespace := range []string{"default", "kruise-system"} {
			_ = s.DeleteAllOf(ctx, &appsv1.ControllerRevision{}, client.InNamespace(namespace))
			_ = s.DeleteAllOf(ctx, &appsv1.ReplicaSet{}, client.InNamespace(namespace))
		}
	})
}

// waitForNextSecond waits until an object that is made has a later time of creation than those before: the API server
// writes it in seconds.
func waitForNextSecond() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 20*time.Millisecond)))
}

// change merges fields into an object.
func (s *shop) change(t *testing.T, text, patch string) {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Patch(t.Context(), s.read(t, text), client.RawPatch(types.MergePatchType, body)); err != nil {
		t.Fatal(err)
	}
}

// setStatus replaces the status of an object by fields, of the newest generation unless they name another.
func (s *shop) setStatus(t *testing.T, text, status string) {
	t.Helper()
	object := s.read(t, text)
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(status), &fields); err != nil {
		t.Fatal(err)
	}
	if _, ok := fields["observedGeneration"]; !ok {
		fields["observedGeneration"] = object.GetGeneration()
	}
	object.Object["status"] = fields
	if err := s.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// record has a controller record the revision of an object, and returns its name.
func (s *shop) record(t *testing.T, word string) string {
	t.Helper()
	live := s.read(t, samples[word])
	if word == "deployment" {
		return s.recordReplicaSet(t, live)
	}
	o := revisions.Owner{Object: live, Kind: live.GroupVersionKind(), Live: s.Client, WithoutClaims: true, Selector: &metav1.LabelSelector{}}
	switch word {
	case "sidecarset":
		set := convert[kruise.SidecarSet](t, live.Object)
		data, err := history.EncodeSpec(&set.Spec)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{kruise.SidecarSetNameKey: "web"}
		if set.Spec.CustomVersion != "" {
			labels[kruise.SidecarSetCustomVersionKey] = set.Spec.CustomVersion
		}
		o.Document = &revisions.Document{Data: data, Namespace: "kruise-system", Labels: labels, HashLabel: "controller.kubernetes.io/hash"}
	case "ud":
		d := convert[kruise.UnitedDeployment](t, live.Object)
		o.Document = &revisions.Document{Data: encodeSubsets(t, &d.Spec.Template), Namespace: "default", HashLabel: "controller.kubernetes.io/hash", Bare: true}
	default:
		spec := convert[appsv1.ReplicaSet](t, live.Object).Spec
		o.Template, o.Selector = &spec.Template, spec.Selector
		o.RecordsClaims = word == "asts" || word == "clone"
	}
	list := &appsv1.ControllerRevisionList{}
	if err := s.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var all []*appsv1.ControllerRevision
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], live) {
			all = append(all, &list.Items[i])
		}
	}
	h, err := revisions.ResolveHistory(t.Context(), s.Client, o, all)
	if err != nil {
		t.Fatal(err)
	}
	return h.Update.Name
}

func convert[T any](t *testing.T, fields map[string]any) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func encodeSubsets(t *testing.T, template *kruise.SubsetTemplate) []byte {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		t.Fatal(err)
	}
	fields["$patch"] = "replace"
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// recordReplicaSet does what the controller of Deployments does.
func (s *shop) recordReplicaSet(t *testing.T, live *unstructured.Unstructured) string {
	t.Helper()
	d := convert[appsv1.Deployment](t, live.Object)
	list := &appsv1.ReplicaSetList{}
	if err := s.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	newest, same := 0, (*appsv1.ReplicaSet)(nil)
	for i := range list.Items {
		number := 0
		_, _ = fmt.Sscan(list.Items[i].Annotations[deploymentRevisionKey], &number)
		newest = max(newest, number)
		template := list.Items[i].Spec.Template.DeepCopy()
		delete(template.Labels, "pod-template-hash")
		if equality.Semantic.DeepEqual(template, &d.Spec.Template) {
			same = &list.Items[i]
		}
	}
	annotations := map[string]string{deploymentRevisionKey: fmt.Sprint(newest + 1)}
	if cause := d.Annotations[changeCauseKey]; cause != "" {
		annotations[changeCauseKey] = cause
	}
	if same != nil {
		same.Annotations = annotations
		if err := s.Update(t.Context(), same); err != nil {
			t.Fatal(err)
		}
		return same.Name
	}
	template := d.Spec.Template.DeepCopy()
	hash := fmt.Sprint("hash", newest+1)
	template.Labels["pod-template-hash"] = hash
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-" + hash, Annotations: annotations, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "pod-template-hash": hash}}, Template: *template},
	}
	if err := s.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return set.Name
}

// templatePath is the path of the pod template of an object of samples.
func templatePath(word string) []string {
	switch word {
	case "ud":
		return []string{"spec", "template", "cloneSetTemplate", "spec", "template"}
	case "sidecarset":
		return []string{"spec"}
	}
	return []string{"spec", "template"}
}

// setImage changes the image of the first container, and adds and removes fields around it.
func (s *shop) setImage(t *testing.T, word, image string) {
	t.Helper()
	object := s.read(t, samples[word])
	path := append(templatePath(word), "spec", "containers")
	if word == "sidecarset" {
		path = []string{"spec", "containers"}
	}
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil || len(containers) == 0 {
		t.Fatalf("%v: %v", containers, err)
	}
	first := containers[0].(map[string]any)
	first["image"], first["command"] = image, []any{"sleep", image}
	delete(first, "env")
	if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
		t.Fatal(err)
	}
	volumes := append(path[:len(path)-1:len(path)-1], "volumes")
	unstructured.RemoveNestedField(object.Object, volumes...)
	if err := s.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// completeWords completes the last word of a subcommand as a shell does.
func completeWords(t *testing.T, words string) string {
	t.Helper()
	last := strings.LastIndexByte(words, ' ')
	before := strings.Fields(words[:last])
	root := &cobra.Command{Use: "regatta"}
	root.AddCommand(NewCommand(nil))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd, "rollout"}, append(before, words[last+1:])...))
	if err := exit.WithExitCodes(root).ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
