// SPDX-License-Identifier: Apache-2.0

package create

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/advancedcronjob"
	"github.com/regatta-sh/regatta/controllers/webhook/broadcastjob"
	"github.com/regatta-sh/regatta/controllers/webhook/containerrecreaterequest"
	"github.com/regatta-sh/regatta/controllers/webhook/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/webhook/sidecarset"
	"github.com/regatta-sh/regatta/test/apiserver"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

// shop is a cluster, and a user who types the command.
type shop struct {
	client.Client
	env        *envtest.Environment
	kubeconfig string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	env, c := api.Serve(t)
	return &shop{c, env, writeKubeconfig(t, env.KubeConfig)}
}

// as is the same cluster for a user without any permission.
func (s *shop) as(t *testing.T, name string) *shop {
	t.Helper()
	user, err := s.env.AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	return &shop{s.Client, s.env, writeKubeconfig(t, text)}
}

// expect types a command that must print something and end well.
func (s *shop) expect(t *testing.T, want, command string) {
	t.Helper()
	if printed, message, code := runCreate(t, s.kubeconfig, splitWords(command)...); printed != want || code != exit.Fine {
		t.Errorf("create %s printed\n%s\nand ended with %d %s, want\n%s", command, printed, code, message, want)
	}
}

// expectFailure types a command that must print nothing and fail.
func (s *shop) expectFailure(t *testing.T, want, command string) {
	t.Helper()
	s.expectError(t, exit.Failed, want, command)
}

func (s *shop) expectError(t *testing.T, wantCode int, want, command string) {
	t.Helper()
	if printed, message, code := runCreate(t, s.kubeconfig, splitWords(command)...); message != want || code != wantCode || printed != "" {
		t.Errorf("create %s printed %q and ended with %d %s\nwant %d %s", command, printed, code, message, wantCode, want)
	}
}

func (s *shop) make(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// makePod makes a pod that runs on a node.
func (s *shop) makePod(t *testing.T, name string, init, containers []string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: corev1.PodSpec{NodeName: "node"}}
	for _, container := range init {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: container, Image: "x"})
	}
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: "x"})
		status := corev1.ContainerStatus{Name: container, ContainerID: "containerd://" + container}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	status := pod.Status
	s.make(t, pod)
	pod.Status = status
	if err := s.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// list returns the objects of a kind.
func (s *shop) list(t *testing.T, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kruise.GroupVersion.WithKind(kind + "List"))
	if err := s.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// read returns an object of the namespace default, without what the API server adds to any object.
func (s *shop) read(t *testing.T, kind, name string) map[string]any {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kruise.GroupVersion.WithKind(kind))
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}
	if kind == "SidecarSet" {
		key.Namespace = ""
	}
	if err := s.Get(t.Context(), key, object); err != nil {
		t.Fatal(err)
	}
	for _, added := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", added)
	}
	return object.Object
}

// decode reads a manifest as the API server has it in the namespace default.
func decode(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	if object.GetKind() != "SidecarSet" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return object
}

func TestThePrintedManifestsCanBeAppliedAndGetNoDefaultsFromTheCRDs(t *testing.T) {
	s := newShop(t)
	all := ""
	for _, name := range manifestNames() {
		printed, message, _ := runCreate(t, s.kubeconfig, asClientDryRun(manifests[name].args, "yaml")...)
		if message != "" {
			t.Fatal(message)
		}
		all += "---\n" + printed
	}
	path := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(path, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "apply", "--kubeconfig", s.kubeconfig, "--server-side", "--validate=strict", "-f", path)
	if text, err := kubectl.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range manifestNames() {
		want := decode(t, manifests[name].want)
		if got := s.read(t, want.GetKind(), want.GetName()); !reflect.DeepEqual(got, want.Object) {
			t.Errorf("%s: the API server has\n%v, want\n%v", name, got, want.Object)
		}
	}
}

func TestTheCommandCreatesTheObjectThatItPrints(t *testing.T) {
	s := newShop(t)
	s.makePod(t, "web-0", nil, []string{"app", "log"})
	for _, name := range manifestNames() {
		command, want := manifests[name].args, decode(t, manifests[name].want)
		line := strings.ToLower(want.GetKind()) + ".apps.kruise.io/" + want.GetName() + " created"
		s.expect(t, line+" (server dry run)\n", strings.Replace(command, " ", " --dry-run=server ", 1))
		s.expect(t, line+"\n", command) // would fail if the dry run had created it
		if got := s.read(t, want.GetKind(), want.GetName()); !reflect.DeepEqual(got, want.Object) {
			t.Errorf("%s: it created\n%v, want\n%v", name, got, want.Object)
		}
		_, message, code := runCreate(t, s.kubeconfig, splitWords(command)...)
		in := " in namespace default"
		if want.GetKind() == "SidecarSet" {
			in = ""
		}
		if exists := want.GetKind() + " " + want.GetName() + " exists already" + in; message != exists || code != exit.Failed {
			t.Errorf("%s: again it ended with %d %s, want %s", name, code, message, exists)
		}
	}
}

// webhooks are those of the manager.
func (s *shop) webhooks() map[string]admit.Webhooks {
	var templates podtemplate.Settings
	return map[string]admit.Webhooks{
		"ContainerRecreateRequest": containerrecreaterequest.New(s),
		"BroadcastJob":             broadcastjob.New(templates, false),
		"AdvancedCronJob":          advancedcronjob.New(templates),
		"ImagePullJob":             imagepulljob.New(),
		"SidecarSet":               sidecarset.New(sidecarset.Options{Reader: s, Configuration: rules.Configuration{Reader: s, Namespace: "kruise-system"}}),
	}
}

// admit asks the webhooks of a kind about an object that is created, and returns their objections.
func (s *shop) admit(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	hooks := s.webhooks()[object.GetKind()]
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: object.GetNamespace(), Object: runtime.RawExtension{Raw: raw},
		Kind: metav1.GroupVersionKind{Group: kruise.GroupVersion.Group, Version: kruise.GroupVersion.Version, Kind: object.GetKind()},
	}}
	if request.Object.Raw, err = review.ApplyPatches(raw, hooks.MutatingHandler().Handle(t.Context(), request)); err != nil {
		t.Fatal(err)
	}
	answer := hooks.ValidatingHandler().Handle(t.Context(), request)
	if answer.Allowed {
		return strings.Join(answer.Warnings, "\n")
	}
	return answer.Result.Message
}

func TestTheWebhooksOfTheManagerAcceptThePrintedManifests(t *testing.T) {
	s := newShop(t)
	s.make(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	s.makePod(t, "web-0", nil, []string{"app", "log"})
	for _, name := range manifestNames() {
		if no := s.admit(t, decode(t, manifests[name].want)); no != "" {
			t.Errorf("%s: %s", name, no)
		}
	}
	refused := decode(t, strings.Replace(manifests["a request with a name"].want, "name: app", "name: other", 1))
	if no := s.admit(t, refused); !strings.Contains(no, "pod web-0 has no such container") {
		t.Errorf("a manifest that is wrong: %s", no)
	}
}

func TestARequestNamesTheContainersOfThePod(t *testing.T) {
	s := newShop(t)
	s.make(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	s.makePod(t, "web-0", []string{"setup"}, []string{"app", "log"})
	s.expect(t, "containerrecreaterequest.apps.kruise.io/all created\n", "crr all --pod web-0")
	want := decode(t, `
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: all}
spec: {podName: web-0, containers: [{name: app}, {name: log}]}
`)
	if got := s.read(t, "ContainerRecreateRequest", "all"); !reflect.DeepEqual(got, want.Object) {
		t.Errorf("it created %v", got)
	}
	s.expect(t, `apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata:
  generateName: web-0-
  namespace: default
spec:
  containers:
  - name: app
  - name: log
  podName: web-0
`, "crr --pod web-0 -n default --dry-run=client -o yaml")
	s.expectFailure(t, `--containers names "setup", an init container of pod web-0: it cannot be restarted`, "crr --pod web-0 --containers app,setup")
	s.expectFailure(t, `--containers names "x", but pod web-0 has no such container in spec.containers`, "crr --pod web-0 --containers app,x --dry-run=server")
	s.expectFailure(t, "there is no Pod web-1 in namespace default", "crr --pod web-1")
	s.expectFailure(t, "there is no Pod web-1 in namespace default", "crr --pod web-1 --containers app")
	s.expectFailure(t, "there is no Pod web-0 in namespace other", "crr --pod web-0 -n other --dry-run=client")
	if left := s.list(t, "ContainerRecreateRequest"); len(left) != 1 {
		t.Errorf("there are %d requests, want 1", len(left))
	}
}

func TestARequestWithoutANameGetsOneOfThePod(t *testing.T) {
	s := newShop(t)
	long := strings.Repeat("a", 57) + "." + strings.Repeat("b", 100)
	for _, pod := range []string{"web-0", long} {
		s.makePod(t, pod, nil, []string{"app"})
		printed, message, code := runCreate(t, s.kubeconfig, "crr", "--pod", pod, "-o", "name")
		name, found := strings.CutPrefix(printed, "containerrecreaterequest.apps.kruise.io/")
		if !found || !strings.HasPrefix(name, pod[:5]) || code != exit.Fine {
			t.Fatalf("it printed %q and ended with %d %s", printed, code, message)
		}
		got := s.read(t, "ContainerRecreateRequest", strings.TrimSpace(name))
		if generate, _, _ := unstructured.NestedString(got, "metadata", "generateName"); generate != pod+"-" {
			t.Errorf("generateName is %q", generate)
		}
	}
	printed, message, _ := runCreate(t, s.kubeconfig, "crr", "--pod", "web-0", "--dry-run=server", "-o", "yaml")
	if !strings.Contains(printed, "  name: web-0-") || strings.Contains(printed, "status:") || strings.Contains(printed, "null") {
		t.Errorf("a dry run of the server printed %s %s", printed, message)
	}
}

func TestAPodMayHaveAThousandContainers(t *testing.T) {
	s := newShop(t)
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	s.makePod(t, "web-0", nil, names)
	s.expect(t, "containerrecreaterequest.apps.kruise.io/all created\n", "crr all --pod web-0")
	s.expect(t, "containerrecreaterequest.apps.kruise.io/named created\n", "crr named --pod web-0 --containers "+strings.Join(names, ","))
	for _, name := range []string{"all", "named"} {
		containers, _, _ := unstructured.NestedSlice(s.read(t, "ContainerRecreateRequest", name), "spec", "containers")
		if len(containers) != 1000 || !reflect.DeepEqual(containers[999], map[string]any{"name": "c999"}) {
			t.Errorf("%s has %d containers", name, len(containers))
		}
	}
}

const cronJobWithVolumes = `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: clean}
spec:
  schedule: "@daily"
  template:
    broadcastJobTemplate:
      metadata:
        labels: {team: a}
        annotations: {note: "yes", cronjob.kubernetes.io/instantiate: other}
        finalizers: [x.io/never]
        name: other
      spec:
        parallelism: 10%
        completionPolicy: {}
        template:
          spec:
            futureField: {}
            restartPolicy: Never
            containers: [{name: a, image: x, resources: {}}]
            volumes: [{name: v, emptyDir: {}}]
`

func TestAJobFromAnAdvancedCronJobIsACopyOfItsTemplate(t *testing.T) {
	s := newShop(t)
	s.make(t, decode(t, cronJobWithVolumes))
	want := `apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata:
  annotations:
    cronjob.kubernetes.io/instantiate: manual
    note: "yes"
  labels:
    team: a
  name: now
spec:
  completionPolicy: {}
  parallelism: 10%
  template:
    spec:
      containers:
      - image: x
        name: a
        resources: {}
      futureField: {}
      restartPolicy: Never
      volumes:
      - emptyDir: {}
        name: v
`
	s.expect(t, want, "bcj now --from acj/clean --dry-run=client -o yaml")
	s.expect(t, "broadcastjob.apps.kruise.io/now created (server dry run)\n", "bcj now --from acj/clean --dry-run=server")
	s.expect(t, "broadcastjob.apps.kruise.io/now created\n", "bcj now --from advancedcronjobs.apps.kruise.io/clean")
	if got := s.read(t, "BroadcastJob", "now"); !reflect.DeepEqual(got, decode(t, want).Object) {
		t.Errorf("it created %v", got)
	}
	s.expectFailure(t, "there is no AdvancedCronJob other in namespace default", "bcj now --from acj/other")
	s.expect(t, "advancedcronjob.apps.kruise.io/jobs created\n", "cronjob jobs --image x --schedule @daily")
	s.expectFailure(t, "copying AdvancedCronJob jobs: it has no spec.template.broadcastJobTemplate: its jobs are of another kind", "bcj new --from acj/jobs")
	s.expect(t, "advancedcronjob.apps.kruise.io/nodes created\n", "cronjob nodes --image x --schedule @daily --broadcast -- true")
	s.expect(t, "broadcastjob.apps.kruise.io/nodes-now created\n", "bcj nodes-now --from acj/nodes")
	if left := s.list(t, "BroadcastJob"); len(left) != 2 {
		t.Errorf("there are %d jobs, want 2", len(left))
	}
}

func TestWhatTheAPIServerRefusesIsSaidWithTheObject(t *testing.T) {
	s := newShop(t)
	s.expectFailure(t, `creating BroadcastJob clean in namespace other: namespaces "other" not found`, "bcj clean --image x -n other")
	invalid := `BroadcastJob.apps.kruise.io "clean" is invalid: spec.completionPolicy.type: Unsupported value: "Never": refused`
	strict := refuseWith(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, invalid)
	s.expectError(t, exit.Refused, "creating BroadcastJob clean in namespace default: "+invalid, "bcj clean --image x --server "+strict)
	without := refuseWith(t, http.StatusNotFound, "", "")
	s.expectFailure(t, "creating BroadcastJob clean: the cluster has no broadcastjobs.apps.kruise.io", "bcj clean --image x --server "+without)
	nobody := s.as(t, "nobody")
	nobody.expectError(t, exit.Refused, `creating SidecarSet a: sidecarsets.apps.kruise.io is forbidden: User "nobody" cannot create resource `+
		`"sidecarsets" in API group "apps.kruise.io" at the cluster scope`, "sidecarset a --selector a=b --image x")
	nobody.expectFailure(t, `reading Pod web-0: pods "web-0" is forbidden: User "nobody" cannot get resource "pods" in API group "" `+
		`in the namespace "default"`, "crr --pod web-0 --containers app")
	for _, kind := range []string{"BroadcastJob", "SidecarSet", "ContainerRecreateRequest"} {
		if left := s.list(t, kind); len(left) > 0 {
			t.Errorf("there are objects of kind %s", kind)
		}
	}
}

// refuseWith is the address of a server that refuses every request: with a status, or without one as if it did not know
// the path.
func refuseWith(t *testing.T, code int, reason metav1.StatusReason, message string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if reason == "" {
			http.Error(w, "404 page not found", code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		}
		_ = json.NewEncoder(w).Encode(status) // a client that is gone does not matter
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheFieldManagerOwnsTheFields(t *testing.T) {
	s := newShop(t)
	for name, flags := range map[string]string{"regatta": "", "pipeline": " --field-manager pipeline"} {
		s.expect(t, "imagepulljob.apps.kruise.io/"+name+"\n", "ipj "+name+" --image x -o name"+flags)
		job := &kruise.ImagePullJob{}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, job); err != nil {
			t.Fatal(err)
		}
		if len(job.ManagedFields) != 1 || job.ManagedFields[0].Manager != name {
			t.Errorf("the managed fields are %v", job.ManagedFields)
		}
	}
}
