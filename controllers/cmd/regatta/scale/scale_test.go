// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/terminal"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

func TestCommandsInACluster(t *testing.T) {
	s := terminal.NewTerminal(t, &api)
	for name, check := range map[string]func(*testing.T, *terminal.Terminal){
		"each kind is scaled": checkScale,
		"an object in another state than the conditions is not scaled":    checkConditions,
		"an object whose replicas are not set is scaled":                  checkUnset,
		"a dry run of scale changes nothing":                              checkScaleDryRun,
		"an object that changes meanwhile is scaled":                      checkScaleConflict,
		"what is mistyped is refused before the cluster is asked":         checkMistyped,
		"given pods of a CloneSet are deleted":                            checkPodsToDelete,
		"pods that are deleted already do not count":                      checkPodsThatGo,
		"pods of others are refused":                                      checkPodsOfOthers,
		"a CloneSet is not scaled down below 0":                           checkTooManyPods,
		"a write of another client between is kept when it scales down":   checkScaleDownConflict,
		"given ordinals of an Advanced StatefulSet are reserved":          checkOrdinals,
		"pods beyond the ordinals are refused":                            checkWrongOrdinals,
		"a subset of a UnitedDeployment is refused":                       checkOwned,
		"objects of odd shapes are not changed":                           checkOddShapes,
		"each kind gets its partition":                                    checkPartition,
		"a partition that has no effect is refused":                       checkIgnoredPartition,
		"subsets of a UnitedDeployment get their partitions":              checkSubsets,
		"a partition is written on the newest object":                     checkPartitionConflict,
		"an object that is deleted meanwhile is an error of each command": checkDeletion,
	} {
		t.Run(name, func(t *testing.T) { check(t, s) })
	}
}

// newObject is an object of a kind with these lines in its spec.
func newObject(version, kind, name string, spec ...string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {namespace: default, name: %s, labels: {app: %s}}\nspec:\n", version, kind, name, name)
	for _, line := range spec {
		text += "  " + line + "\n"
	}
	return text
}

// The lines that the spec of a workload must have, and those of a UnitedDeployment of CloneSets.
var (
	pods    = []string{"selector: {matchLabels: {app: web}}", "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: x}]}}"}
	subsets = []string{
		"selector: {matchLabels: {app: web}}", "topology: {subsets: [{name: a}, {name: b-c}]}",
		"template: {cloneSetTemplate: {spec: {selector: {}, template: {spec: {containers: []}}}}}",
	}
)

func cloneSet(name string, spec ...string) string {
	return newObject("apps.kruise.io/v1beta1", "CloneSet", name, append(spec, pods...)...)
}

func advancedStatefulSet(name string, spec ...string) string {
	return newObject("apps.kruise.io/v1beta1", "StatefulSet", name, append(spec, pods...)...)
}

func unitedDeployment(name string, spec ...string) string {
	return newObject("apps.kruise.io/v1beta1", "UnitedDeployment", name, spec...)
}

func nativeStatefulSet(name string, spec ...string) string {
	return newObject("apps/v1", "StatefulSet", name, append(spec, append(pods, "serviceName: web")...)...)
}

func deployment(name string, spec ...string) string {
	return newObject("apps/v1", "Deployment", name, append(spec, pods...)...)
}

// commandOf makes the command that a line begins with.
func commandOf(t *testing.T, line string) *cobra.Command {
	t.Helper()
	for _, cmd := range []*cobra.Command{NewCommand(), NewScaleDownCommand(), NewPartitionCommand(nil)} {
		if cmd.Name() == strings.Fields(line)[0] {
			return cmd
		}
	}
	t.Fatalf("there is no command %q", line)
	return nil
}

// types runs a command and compares its output, its errors and its exit code.
func types(t *testing.T, s *terminal.Terminal, line string, want terminal.Result) {
	t.Helper()
	got := s.TypeCommand(t, commandOf(t, line), strings.Fields(line)[1:]...)
	got.Requests = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", line, diff)
	}
}

// has compares a field of an object.
func has(t *testing.T, s *terminal.Terminal, object, path, want string) {
	t.Helper()
	if diff := cmp.Diff(want+"\n", s.ReadField(t, object, path)); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", path, diff)
	}
}

// patch changes an object as another client does.
func patch(t *testing.T, s *terminal.Terminal, object, change string) {
	t.Helper()
	if err := s.Patch(t.Context(), terminal.ParseObject(t, object), client.RawPatch("application/merge-patch+json", []byte(change))); err != nil {
		t.Error(err)
	}
}

// beforeFirstWrite does something before a write of a command reaches the API server for the first time.
func beforeFirstWrite(t *testing.T, s *terminal.Terminal, do func()) *atomic.Int32 {
	var writes atomic.Int32
	s.BeforeRequests(t, func(r *http.Request) {
		if r.Method != http.MethodGet && writes.Add(1) == 1 {
			do()
		}
	})
	return &writes
}

func checkScale(t *testing.T, s *terminal.Terminal) {
	for word, w := range map[string]struct{ text, resource string }{
		"clone": {cloneSet("web", "replicas: 1"), "cloneset.apps.kruise.io"}, "asts": {advancedStatefulSet("web", "replicas: 1"), "statefulset.apps.kruise.io"},
		"ud": {unitedDeployment("web", append(subsets, "replicas: 1")...), "uniteddeployment.apps.kruise.io"}, "deploy": {deployment("web", "replicas: 1"), "deployment.apps"},
		"sts": {nativeStatefulSet("web", "replicas: 1"), "statefulset.apps"},
	} {
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(t, w.text)
			types(t, s, "scale "+word+"/web --replicas 3", terminal.Result{Out: w.resource + "/web scaled\n"})
			has(t, s, w.text, "spec.replicas", "3")
			types(t, s, "scale "+word+"/web --replicas 3 --current-replicas 3", terminal.Result{Out: w.resource + "/web unchanged\n"})
			types(t, s, "scale "+word+" web --replicas=0 --current-replicas=3 -o jsonpath={.spec.replicas},{.metadata.generation}", terminal.Result{Out: "0,3"})
			has(t, s, w.text, "spec.replicas", "0")
		})
	}
	s.CreateObjects(t, cloneSet("a", "replicas: 1"), cloneSet("b", "replicas: 1"))
	types(t, s, "scale clone --all --replicas 2", terminal.Result{Out: "cloneset.apps.kruise.io/a scaled\ncloneset.apps.kruise.io/b scaled\n"})
	types(t, s, "scale clone -l app=b --replicas 5", terminal.Result{Out: "cloneset.apps.kruise.io/b scaled\n"})
	types(t, s, "scale clone/a clone/gone --replicas 5", terminal.Result{Err: "there is no CloneSet gone in namespace default", Code: exit.Failed})
	has(t, s, cloneSet("a"), "spec.replicas", "2")
	got := s.TypeCommand(t, NewCommand(), "clone/a", "--replicas", "1")
	want := []string{
		"GET /apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/a", "PUT /apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/a/scale",
		"GET /apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/a",
	}
	if diff := cmp.Diff(want, got.Requests); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func checkConditions(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", "replicas: 2"))
	version := strings.Trim(s.ReadField(t, cloneSet("web"), "metadata.resourceVersion"), "\"\n")
	types(t, s, "scale clone/web --replicas 3 --current-replicas 1", terminal.Result{
		Err: "scaling CloneSet web: spec.replicas is 2; --current-replicas is 1", Code: exit.Refused,
	})
	types(t, s, "scale clone/web --replicas 3 --resource-version 1", terminal.Result{
		Err: "scaling CloneSet web: metadata.resourceVersion is " + version + "; --resource-version is 1", Code: exit.Refused,
	})
	types(t, s, "scale clone/web --replicas 3 --resource-version 1 --dry-run=client", terminal.Result{
		Err: "scaling CloneSet web: metadata.resourceVersion is " + version + "; --resource-version is 1", Code: exit.Refused,
	})
	has(t, s, cloneSet("web"), "spec.replicas", "2")
	types(t, s, "scale clone/web --replicas 3 --resource-version "+version, terminal.Result{Out: "cloneset.apps.kruise.io/web scaled\n"})
}

func checkUnset(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web"), unitedDeployment("web", subsets...), cloneSet("one"))
	types(t, s, "scale clone/web --current-replicas 2 --replicas 3", terminal.Result{Err: "scaling CloneSet web: spec.replicas is 1; --current-replicas is 2", Code: exit.Refused})
	types(t, s, "scale clone/web --current-replicas 1 --replicas 3", terminal.Result{Out: "cloneset.apps.kruise.io/web scaled\n"})
	has(t, s, cloneSet("web"), "spec.replicas", "3")
	types(t, s, "scale ud/web --current-replicas 0 --replicas 3", terminal.Result{Err: "scaling UnitedDeployment web: spec.replicas is not set; --current-replicas is 0", Code: exit.Refused})
	types(t, s, "scale ud/web --replicas 3", terminal.Result{Out: "uniteddeployment.apps.kruise.io/web scaled\n"})
	has(t, s, unitedDeployment("web"), "spec.replicas", "3")
	types(t, s, "scale clone/one --replicas 1", terminal.Result{Out: "cloneset.apps.kruise.io/one scaled\n"})
	has(t, s, cloneSet("one"), "spec.replicas", "1")
}

func checkScaleDryRun(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", "replicas: 2"), deployment("web", "replicas: 2"))
	for mode, printed := range map[string]string{"client": " (dry run)", "server": " (server dry run)"} {
		types(t, s, "scale clone/web deploy/web --replicas 3 --dry-run="+mode, terminal.Result{
			Out: "cloneset.apps.kruise.io/web scaled" + printed + "\ndeployment.apps/web scaled" + printed + "\n",
		})
		got := s.TypeCommand(t, NewCommand(), "clone/web", "--replicas", "3", "-o", "yaml", "--dry-run="+mode)
		if n, _, _ := unstructured.NestedInt64(terminal.ParseObject(t, got.Out).Object, "spec", "replicas"); n != 3 {
			t.Errorf("got %+v", got)
		}
		types(t, s, "scale clone/web --replicas 3 -o name --dry-run="+mode, terminal.Result{Out: "cloneset.apps.kruise.io/web\n"})
	}
	has(t, s, cloneSet("web"), "spec.replicas", "2")
	has(t, s, deployment("web"), "spec.replicas", "2")
}

func checkScaleConflict(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", "replicas: 2"), cloneSet("other", "replicas: 2"))
	writes := beforeFirstWrite(t, s, func() { patch(t, s, cloneSet("web"), `{"metadata":{"labels":{"x":"y"}},"spec":{"minReadySeconds":5}}`) })
	types(t, s, "scale clone/web --replicas 3", terminal.Result{Out: "cloneset.apps.kruise.io/web scaled\n"})
	has(t, s, cloneSet("web"), "spec.replicas", "3")
	has(t, s, cloneSet("web"), "spec.minReadySeconds", "5")
	if n := writes.Load(); n != 2 {
		t.Errorf("there are %d writes", n)
	}
	beforeFirstWrite(t, s, func() { patch(t, s, cloneSet("other"), `{"spec":{"replicas":7}}`) })
	types(t, s, "scale clone/other --replicas 3 --current-replicas 2", terminal.Result{
		Err: "scaling CloneSet other: spec.replicas is 7; --current-replicas is 2", Code: exit.Refused,
	})
	has(t, s, cloneSet("other"), "spec.replicas", "7")
}

func checkMistyped(t *testing.T, s *terminal.Terminal) {
	scalable := "clone/NAME, asts/NAME, ud/NAME, deployment/NAME or statefulset/NAME"
	parted := "clone/NAME, asts/NAME, ads/NAME, sidecarset/NAME, ud/NAME or statefulset/NAME"
	for line, want := range map[string]string{
		"scale clone/web":                                         `required flag(s) "replicas" not set`,
		"scale --replicas 1":                                      "name an object; want " + scalable,
		"scale clone/web --replicas -1":                           "--replicas is -1; want a number from 0 to 2147483647",
		"scale clone/web --replicas 2147483648":                   "--replicas is 2147483648; want a number from 0 to 2147483647",
		"scale clone/web --replicas x":                            `--replicas is "x": it must be an integer`,
		"scale clone/web --replicas 1 --current-replicas -2":      "--current-replicas is -2; want 0 or more, or -1 for no condition",
		"scale clone/a clone/b --replicas 1 --resource-version 5": "--resource-version is that of one object; name one object",
		"scale clone --all --replicas 1 --resource-version 5":     "--resource-version is that of one object; name one object",
		"scale ads/web --replicas 1":                              "this command is not for objects of kind Advanced DaemonSet; want " + scalable,
		"scale clone/a/b --replicas 1":                            `"clone/a/b" is not the name of an object; want ` + scalable,
		"scale clone/web --replicas 1 --dry-run=maybe":            `--dry-run is "maybe"; want --dry-run=client, --dry-run=server or --dry-run=none`,
		"scaledown clone/web":                                     `required flag(s) "pods" not set`,
		"scaledown --pods a":                                      "name an object; want clone/NAME or asts/NAME",
		"scaledown pod/a --pods a":                                `"pod" is no kind that this command changes; want clone/NAME or asts/NAME`,
		"scaledown clone/a clone/b --pods a":                      "--pods are those of one object; name one object",
		"scaledown clone --all --pods a":                          "--pods are those of one object; name one object",
		"scaledown clone/web --pods=":                             "--pods is empty; name the pods to delete",
		"scaledown clone/web --pods pod/a":                        `--pods has "pod/a", which is not the name of a pod: ` + subdomainRule,
		"scaledown clone/web --pods a,,b":                         `--pods has "", which is not the name of a pod: ` + subdomainRule,
		"scaledown deploy/web --pods a":                           "Deployment of Kubernetes web cannot be scaled down by given pods, since a pod of it that is deleted is replaced; want clone/NAME or asts/NAME",
		"scaledown sts web --pods web-1":                          "StatefulSet of Kubernetes web cannot be scaled down by given pods, since a pod of it that is deleted is replaced; want clone/NAME or asts/NAME",
		"scaledown ud/web --pods a":                               "UnitedDeployment web cannot be scaled down by given pods, since a pod of it that is deleted is replaced; want clone/NAME or asts/NAME",
		"partition clone/web":                                     "want KIND/NAME... and then the partition, or --subset for a UnitedDeployment",
		"partition clone/web clone/b":                             `the partition is "clone/b"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web -- -1":                               `the partition is "-1"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web 101%":                                `the partition is "101%"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web 1.5":                                 `the partition is "1.5"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web 1.5%":                                `the partition is "1.5%"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web -- -5%":                              `the partition is "-5%"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web 2147483648":                          `the partition is "2147483648"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web 99999999999999999999":                `the partition is "99999999999999999999"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition clone/web %":                                   `the partition is "%"; want a number of pods such as 3, or a percentage from 0% to 100%`,
		"partition asts/db 30%":                                   "Advanced StatefulSet db takes no percentage as its partition; want a number in place of 30%",
		"partition clone/web sts/db 30%":                          "StatefulSet of Kubernetes db takes no percentage as its partition; want a number in place of 30%",
		"partition asts --all 30%":                                "Advanced StatefulSet takes no percentage as its partition; want a number in place of 30%",
		"partition ud/web 3":                                      "UnitedDeployment web has a partition for each subset; want --subset NAME=VALUE in place of 3",
		"partition deploy/web 3":                                  "this command is not for objects of kind Deployment of Kubernetes; want " + parted,
		"partition clone/web --subset a=1":                        "CloneSet web has no subsets; want its partition in place of --subset",
		"partition ud/web --subset a":                             `--subset is "a"; want NAME=VALUE, and a number of pods as the value`,
		"partition ud/web --subset =1":                            `--subset is "=1"; want NAME=VALUE, and a number of pods as the value`,
		"partition ud/web --subset a=30%":                         `--subset is "a=30%"; want NAME=VALUE, and a number of pods as the value`,
		"partition ud/web --subset a=-1":                          `--subset is "a=-1"; want NAME=VALUE, and a number of pods as the value`,
		"partition ud/web --subset a=1 --subset a=2":              "--subset has a twice; name each subset once",
		"partition ud/web 3 --subset a=1":                         `"3" names no object; want ` + parted,
	} {
		t.Run(line, func(t *testing.T) {
			got := s.TypeCommand(t, commandOf(t, line), strings.Fields(line)[1:]...)
			if diff := cmp.Diff(terminal.Result{Err: want, Code: exit.Usage}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const subdomainRule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
	"(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

// createPod makes a pod of an object.
func createPod(t *testing.T, s *terminal.Terminal, name, owner string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}},
	}
	if owner != "" {
		of := s.ReadObject(t, owner)
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true),
		}}
	}
	if change != nil {
		change(pod)
	}
	status := pod.Status
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		_ = s.Patch(context.Background(), pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = s.Delete(context.Background(), pod, client.GracePeriodSeconds(0))
	})
	if status.Phase != "" {
		pod.Status = status
		if err := s.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	return pod
}

func checkPodsToDelete(t *testing.T, s *terminal.Terminal) {
	web := cloneSet("web", "replicas: 5", "scaleStrategy: {maxUnavailable: 1, podsToDelete: [web-gone, web-x, Not/A/Name, web-x]}")
	s.CreateObjects(t, web)
	for _, name := range []string{"web-a", "web-b", "web-c", "web-x"} {
		createPod(t, s, name, web, nil)
	}
	types(t, s, "scaledown clone/web --pods web-a,web-b --dry-run=server", terminal.Result{
		Out: "cloneset.apps.kruise.io/web scaled down by 2: web-a, web-b are deleted (server dry run)\n",
	})
	types(t, s, "scaledown clone/web --pods web-a,web-b --dry-run=client -o jsonpath={.spec.replicas}{.spec.scaleStrategy.podsToDelete}", terminal.Result{Out: `3["web-x","web-a","web-b"]`})
	has(t, s, web, "spec.replicas", "5")
	got := s.TypeCommand(t, NewScaleDownCommand(), "clone/web", "--pods", "web-a,web-b", "--pods", "web-a")
	if got.Out != "cloneset.apps.kruise.io/web scaled down by 2: web-a, web-b are deleted\n" || got.Err != "" || got.Code != exit.Fine {
		t.Errorf("got %+v", got)
	}
	writes := 0
	for _, r := range got.Requests {
		if !strings.HasPrefix(r, "GET ") {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("there is not one write in %q", got.Requests)
	}
	has(t, s, web, "spec.replicas", "3")
	has(t, s, web, "spec.scaleStrategy", "enablePVCReuse: false\nmaxUnavailable: 1\npodsToDelete:\n- web-x\n- web-a\n- web-b")
	types(t, s, "scaledown clone web --pods web-c -o name", terminal.Result{Out: "cloneset.apps.kruise.io/web\n"})
	has(t, s, web, "spec.replicas", "2")
	types(t, s, "scaledown clone/web --pods web-a", terminal.Result{
		Out: "cloneset.apps.kruise.io/web unchanged\n", Err: "pod web-a does not count: spec.scaleStrategy.podsToDelete has it already\n",
	})
	// Without replicas there is one.
	one := cloneSet("one")
	s.CreateObjects(t, one)
	createPod(t, s, "one-a", one, nil)
	types(t, s, "scaledown clone/one --pods one-a", terminal.Result{Out: "cloneset.apps.kruise.io/one scaled down by 1: one-a is deleted\n"})
	has(t, s, one, "spec.replicas", "0")
}

func checkPodsThatGo(t *testing.T, s *terminal.Terminal) {
	web := cloneSet("web", "replicas: 5", "scaleStrategy: {podsToDelete: [web-listed]}")
	s.CreateObjects(t, web)
	createPod(t, s, "web-listed", web, nil)
	createPod(t, s, "web-asked", web, func(p *corev1.Pod) { p.Labels["apps.kruise.io/specified-delete"] = "" })
	createPod(t, s, "web-hooked", web, func(p *corev1.Pod) { p.Labels["lifecycle.apps.kruise.io/state"] = "PreparingDelete" })
	createPod(t, s, "web-failed", web, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	createPod(t, s, "web-a", web, nil)
	going := createPod(t, s, "web-going", web, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} })
	if err := s.Delete(t.Context(), going, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	remarks := `pod web-listed does not count: spec.scaleStrategy.podsToDelete has it already
pod web-asked does not count: it has the label apps.kruise.io/specified-delete, so it is deleted and replaced
pod web-hooked does not count: its label lifecycle.apps.kruise.io/state is PreparingDelete, so it is being deleted already
pod web-failed does not count: it has ended, so it is none of the replicas
pod web-going does not count: it terminates already
`
	types(t, s, "scaledown clone/web --pods web-listed,web-asked,web-hooked,web-failed,web-going", terminal.Result{Out: "cloneset.apps.kruise.io/web unchanged\n", Err: remarks})
	types(t, s, "scaledown clone/web --pods web-listed,web-asked,web-a,web-hooked,web-failed,web-going", terminal.Result{
		Out: "cloneset.apps.kruise.io/web scaled down by 1: web-a is deleted\n", Err: remarks,
	})
	has(t, s, web, "spec.replicas", "4")
	has(t, s, web, "spec.scaleStrategy.podsToDelete", "- web-listed\n- web-a")
}

func checkPodsOfOthers(t *testing.T, s *terminal.Terminal) {
	web, other := cloneSet("web", "replicas: 5"), cloneSet("other", "replicas: 5")
	s.CreateObjects(t, web, other)
	createPod(t, s, "web-a", web, nil)
	createPod(t, s, "web-other", other, nil)
	createPod(t, s, "web-alone", "", nil)
	createPod(t, s, "web-owned", web, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })
	createPod(t, s, "web-older", web, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "older" })
	types(t, s, "scaledown clone/web --pods web-a,web-gone,web-other,web-alone,web-owned,web-older", terminal.Result{
		Err: "changing CloneSet web: there is no pod web-gone in namespace default, pod web-other is not of CloneSet web, pod web-alone is not of CloneSet web, " +
			"pod web-owned is not of CloneSet web, pod web-older is not of CloneSet web; no pod is deleted", Code: exit.Refused,
	})
	has(t, s, web, "spec.replicas", "5")
	has(t, s, web, "spec.scaleStrategy", "null")
	types(t, s, "scaledown clone/gone --pods web-a", terminal.Result{Err: "there is no CloneSet gone in namespace default", Code: exit.Failed})
}

func checkTooManyPods(t *testing.T, s *terminal.Terminal) {
	web := cloneSet("web", "replicas: 1")
	s.CreateObjects(t, web)
	createPod(t, s, "web-a", web, nil)
	createPod(t, s, "web-b", web, nil)
	types(t, s, "scaledown clone/web --pods web-a,web-b", terminal.Result{
		Err: "changing CloneSet web: spec.replicas is 1 and cannot be lowered by 2 pods", Code: exit.Refused,
	})
	has(t, s, web, "spec.replicas", "1")
}

func checkScaleDownConflict(t *testing.T, s *terminal.Terminal) {
	web := cloneSet("web", "replicas: 5")
	s.CreateObjects(t, web)
	createPod(t, s, "web-a", web, nil)
	createPod(t, s, "web-b", web, nil)
	beforeFirstWrite(t, s, func() {
		patch(t, s, web, `{"spec":{"replicas":9,"scaleStrategy":{"podsToDelete":["web-b"]}}}`)
	})
	types(t, s, "scaledown clone/web --pods web-a,web-b", terminal.Result{
		Out: "cloneset.apps.kruise.io/web scaled down by 1: web-a is deleted\n", Err: "pod web-b does not count: spec.scaleStrategy.podsToDelete has it already\n",
	})
	has(t, s, web, "spec.replicas", "8")
	has(t, s, web, "spec.scaleStrategy.podsToDelete", "- web-b\n- web-a")
}

func checkOrdinals(t *testing.T, s *terminal.Terminal) {
	db := advancedStatefulSet("db", "replicas: 5", "ordinals: {start: 3}", `reserveOrdinals: [4, "6-7"]`) // 3, 5, 8, 9 and 10
	s.CreateObjects(t, db)
	types(t, s, "scaledown asts/db --pods db-5,db-10 --dry-run=client", terminal.Result{
		Out: "statefulset.apps.kruise.io/db scaled down by 2: db-5, db-10 are deleted (dry run)\n",
	})
	types(t, s, "scaledown asts/db --pods db-5,db-10", terminal.Result{Out: "statefulset.apps.kruise.io/db scaled down by 2: db-5, db-10 are deleted\n"})
	has(t, s, db, "spec.replicas", "3")
	has(t, s, db, "spec.reserveOrdinals", "- 4\n- 6-7\n- 5\n- 10")
	types(t, s, "scaledown asts/db --pods db-10,db-7,db-3", terminal.Result{
		Out: "statefulset.apps.kruise.io/db scaled down by 1: db-3 is deleted\n",
		Err: "pod db-10 does not count: spec.reserveOrdinals has its ordinal already\npod db-7 does not count: spec.reserveOrdinals has its ordinal already\n",
	})
	types(t, s, "scaledown asts/db --pods db-7", terminal.Result{
		Out: "statefulset.apps.kruise.io/db unchanged\n", Err: "pod db-7 does not count: spec.reserveOrdinals has its ordinal already\n",
	})
	one := advancedStatefulSet("one-1")
	s.CreateObjects(t, one)
	types(t, s, "scaledown asts/one-1 --pods one-1-0", terminal.Result{Out: "statefulset.apps.kruise.io/one-1 scaled down by 1: one-1-0 is deleted\n"})
	has(t, s, one, "spec.replicas", "0")
	has(t, s, one, "spec.reserveOrdinals", "- 0")
}

func checkWrongOrdinals(t *testing.T, s *terminal.Terminal) {
	db := advancedStatefulSet("db", "replicas: 2", "ordinals: {start: 3}")
	s.CreateObjects(t, db)
	for pod, want := range map[string]string{
		"db-5":           "pod db-5 is beyond the ordinals of Advanced StatefulSet db: spec.replicas is 2 and the first ordinal is 3",
		"db-2":           "pod db-2 is beyond the ordinals of Advanced StatefulSet db: spec.replicas is 2 and the first ordinal is 3",
		"db-03":          "db-03 is not the name of a pod of Advanced StatefulSet db; want db-ORDINAL",
		"db-a":           "db-a is not the name of a pod of Advanced StatefulSet db; want db-ORDINAL",
		"db--3":          "db--3 is not the name of a pod of Advanced StatefulSet db; want db-ORDINAL",
		"web-3":          "web-3 is not the name of a pod of Advanced StatefulSet db; want db-ORDINAL",
		"db-99999999999": "db-99999999999 is not the name of a pod of Advanced StatefulSet db; want db-ORDINAL",
		"db-2147483647":  "pod db-2147483647 is beyond the ordinals of Advanced StatefulSet db: spec.replicas is 2 and the first ordinal is 3",
	} {
		types(t, s, "scaledown asts/db --pods db-3,"+pod, terminal.Result{Err: "changing Advanced StatefulSet db: " + want + "; no pod is deleted", Code: exit.Refused})
	}
	has(t, s, db, "spec.replicas", "2")
	has(t, s, db, "spec.reserveOrdinals", "null")
	// A set of very many replicas is not counted through.
	s.CreateObjects(t, advancedStatefulSet("many", "replicas: 2147483647", `reserveOrdinals: ["0-1000000000"]`))
	types(t, s, "scaledown asts/many --pods many-1000000001", terminal.Result{Out: "statefulset.apps.kruise.io/many scaled down by 1: many-1000000001 is deleted\n"})
}

func checkOwned(t *testing.T, s *terminal.Terminal) {
	owned := func(text string) string {
		return strings.Replace(text, "metadata: {", "metadata: {ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, name: ud, uid: u, controller: true}], ", 1)
	}
	s.CreateObjects(t, owned(cloneSet("web", "replicas: 2")), owned(nativeStatefulSet("web", "replicas: 2")))
	refused := terminal.Result{Err: "CloneSet web is of UnitedDeployment ud, which would undo the change; change the UnitedDeployment instead", Code: exit.Refused}
	types(t, s, "scale clone/web --replicas 1", refused)
	types(t, s, "scaledown clone/web --pods web-a", refused)
	types(t, s, "partition clone/web 1", refused)
	types(t, s, "scale sts/web --replicas 1", terminal.Result{
		Err: "StatefulSet of Kubernetes web is of UnitedDeployment ud, which would undo the change; change the UnitedDeployment instead", Code: exit.Refused,
	})
	has(t, s, cloneSet("web"), "spec.replicas", "2")
}

func checkOddShapes(t *testing.T, s *terminal.Terminal) {
	deployed := unitedDeployment("deployed", "selector: {}", "topology: {subsets: [{name: a}]}", "template: {deploymentTemplate: {spec: {selector: {}, template: {spec: {containers: []}}}}}")
	s.CreateObjects(t, deployed)
	types(t, s, "partition ud/deployed --subset a=1", terminal.Result{
		Err: "changing UnitedDeployment deployed: the subsets are Deployments by spec.template.deploymentTemplate, which have no partition; use a cloneSetTemplate", Code: exit.Refused,
	})
}

func checkPartition(t *testing.T, s *terminal.Terminal) {
	daemonSet := newObject("apps.kruise.io/v1beta1", "DaemonSet", "web", pods...)
	sidecarSet := "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, containers: [{name: main, image: x}]}}"
	for word, w := range map[string]struct{ text, resource, path string }{
		"clone":      {cloneSet("web", "updateStrategy: {rollingUpdate: {maxSurge: 2}}"), "cloneset.apps.kruise.io", "spec.updateStrategy.rollingUpdate.partition"},
		"asts":       {advancedStatefulSet("web"), "statefulset.apps.kruise.io", "spec.updateStrategy.rollingUpdate.partition"},
		"ads":        {daemonSet, "daemonset.apps.kruise.io", "spec.updateStrategy.rollingUpdate.partition"},
		"sidecarset": {sidecarSet, "sidecarset.apps.kruise.io", "spec.updateStrategy.partition"},
		"sts":        {nativeStatefulSet("web"), "statefulset.apps", "spec.updateStrategy.rollingUpdate.partition"},
	} {
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(t, w.text)
			types(t, s, "partition "+word+"/web 0", terminal.Result{Out: w.resource + "/web unchanged\n"})
			types(t, s, "partition "+word+"/web 3 --dry-run=server", terminal.Result{Out: w.resource + "/web partition set to 3 (server dry run)\n"})
			types(t, s, "partition "+word+"/web 100000", terminal.Result{Out: w.resource + "/web partition set to 100000\n"})
			has(t, s, w.text, w.path, "100000")
			types(t, s, "partition "+word+" web 3", terminal.Result{Out: w.resource + "/web partition set to 3\n"})
			has(t, s, w.text, w.path, "3")
			types(t, s, "partition "+word+"/web 3", terminal.Result{Out: w.resource + "/web unchanged\n"})
			if word != "asts" && word != "sts" {
				types(t, s, "partition "+word+"/web 30%", terminal.Result{Out: w.resource + "/web partition set to 30%\n"})
				has(t, s, w.text, w.path, "30%")
			}
			types(t, s, "partition "+word+"/web 0", terminal.Result{Out: w.resource + "/web partition set to 0\n"})
			has(t, s, w.text, w.path, "0")
		})
	}
	clone := cloneSet("kept", "updateStrategy: {rollingUpdate: {maxSurge: 2, paused: true}}")
	s.CreateObjects(t, clone)
	types(t, s, "partition clone -l app=kept 100%", terminal.Result{Out: "cloneset.apps.kruise.io/kept partition set to 100%\n"})
	has(t, s, clone, "spec.updateStrategy", "rollingUpdate:\n  maxSurge: 2\n  partition: 100%\n  paused: true")
	types(t, s, "partition clone/kept 5 -o jsonpath={.spec.updateStrategy.rollingUpdate.partition}", terminal.Result{Out: "5"})
}

func checkIgnoredPartition(t *testing.T, s *terminal.Terminal) {
	onDelete := "updateStrategy: {type: OnDelete}"
	s.CreateObjects(t, cloneSet("web", onDelete), advancedStatefulSet("web", onDelete), nativeStatefulSet("web", onDelete))
	for word, object := range map[string]string{"clone": "CloneSet", "asts": "Advanced StatefulSet", "sts": "StatefulSet of Kubernetes"} {
		types(t, s, "partition "+word+"/web 3", terminal.Result{
			Err:  "changing " + object + " web: spec.updateStrategy.type is OnDelete, so a partition has no effect: a pod is updated when it is deleted; set RollingUpdate first",
			Code: exit.Refused,
		})
	}
	sidecarSet := func(name, more string) string {
		return "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: " + name + "}, spec: {selector: {matchLabels: {app: web}}, containers: [{name: main, image: x}], updateStrategy: {type: NotUpdate}" + more + "}}"
	}
	s.CreateObjects(t, sidecarSet("web", ""), sidecarSet("partial", ", injectionStrategy: {revision: {revisionName: x, policy: Partial}}"))
	types(t, s, "partition sidecarset/web 3", terminal.Result{
		Err: "changing SidecarSet web: spec.updateStrategy.type is NotUpdate, so a partition has no effect: running pods are not updated; set RollingUpdate first", Code: exit.Refused,
	})
	types(t, s, "partition sidecarset/partial 30%", terminal.Result{Out: "sidecarset.apps.kruise.io/partial partition set to 30%\n"})
}

func checkSubsets(t *testing.T, s *terminal.Terminal) {
	web := unitedDeployment("web", append(subsets, "updateStrategy: {type: Manual}")...)
	s.CreateObjects(t, web)
	types(t, s, "partition ud/web --subset a=0", terminal.Result{Out: "uniteddeployment.apps.kruise.io/web unchanged\n"})
	types(t, s, "partition ud/web --subset a=3 --subset b-c=0", terminal.Result{Out: "uniteddeployment.apps.kruise.io/web partition set to a=3, b-c=0\n"})
	has(t, s, web, "spec.updateStrategy", "manualUpdate:\n  partitions:\n    a: 3\ntype: Manual")
	types(t, s, "partition ud/web --subset b-c=5,a=0 --dry-run=client", terminal.Result{Out: "uniteddeployment.apps.kruise.io/web partition set to b-c=5, a=0 (dry run)\n"})
	types(t, s, "partition ud --all --subset b-c=5,a=0", terminal.Result{Out: "uniteddeployment.apps.kruise.io/web partition set to b-c=5, a=0\n"})
	has(t, s, web, "spec.updateStrategy.manualUpdate.partitions", "a: 0\nb-c: 5")
	types(t, s, "partition ud/web --subset a=1 --subset z=1", terminal.Result{
		Err: "changing UnitedDeployment web: spec.topology.subsets has no z; it has a, b-c", Code: exit.Refused,
	})
	has(t, s, web, "spec.updateStrategy.manualUpdate.partitions", "a: 0\nb-c: 5")
	onDelete := unitedDeployment("on-delete", "selector: {}", "topology: {subsets: [{name: a}]}",
		"template: {advancedStatefulSetTemplate: {spec: {selector: {}, updateStrategy: {type: OnDelete}, template: {spec: {containers: []}}}}}")
	s.CreateObjects(t, onDelete)
	types(t, s, "partition ud/on-delete --subset a=1", terminal.Result{
		Err: "changing UnitedDeployment on-delete: spec.template.advancedStatefulSetTemplate.spec.updateStrategy.type is OnDelete, so a partition has no effect: " +
			"a pod is updated when it is deleted; set RollingUpdate first", Code: exit.Refused,
	})
}

func checkPartitionConflict(t *testing.T, s *terminal.Terminal) {
	web, strict := cloneSet("web"), cloneSet("strict")
	s.CreateObjects(t, web, strict)
	beforeFirstWrite(t, s, func() { patch(t, s, web, `{"spec":{"updateStrategy":{"rollingUpdate":{"paused":true}}}}`) })
	types(t, s, "partition clone/web 3", terminal.Result{Out: "cloneset.apps.kruise.io/web partition set to 3\n"})
	has(t, s, web, "spec.updateStrategy", "rollingUpdate:\n  partition: 3\n  paused: true")
	beforeFirstWrite(t, s, func() { patch(t, s, strict, `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`) })
	types(t, s, "partition clone/strict 3", terminal.Result{
		Err: "changing CloneSet strict: spec.updateStrategy.type is OnDelete, so a partition has no effect: a pod is updated when it is deleted; set RollingUpdate first", Code: exit.Refused,
	})
}

func checkDeletion(t *testing.T, s *terminal.Terminal) {
	web := cloneSet("web", "replicas: 2")
	for _, line := range []string{"scale clone/web --replicas 3", "scaledown clone/web --pods web-a", "partition clone/web 3"} {
		t.Run(line, func(t *testing.T) {
			s.CreateObjects(t, web)
			createPod(t, s, "web-a", web, nil)
			beforeFirstWrite(t, s, func() {
				if err := s.Delete(t.Context(), terminal.ParseObject(t, web)); err != nil {
					t.Error(err)
				}
			})
			types(t, s, line, terminal.Result{Err: "CloneSet web was deleted", Code: exit.Failed})
		})
	}
}
