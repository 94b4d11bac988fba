// SPDX-License-Identifier: Apache-2.0

package set

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		"each kind is changed where it has its pod spec":          checkKinds,
		"additional fields of a SidecarSet are preserved":         checkSidecarSet,
		"what is mistyped is refused before the cluster is asked": checkMistyped,
		"an unknown container changes nothing":                    checkUnknownContainers,
		"objects of odd shapes are not changed":                   checkOddShapes,
		"a dry run changes nothing":                               checkDryRun,
		"objects are selected":                                    checkSelection,
		"the write of another client is kept":                     checkConflict,
		"an object that is deleted meanwhile is an error":         checkDeletion,
		"a subset of a UnitedDeployment is refused":               checkSubset,
		"variables are set in place":                              checkVariables,
		"variables that are given twice become one":               checkDuplicates,
		"a variable is not overwritten with --overwrite=false":    checkOverwrite,
		"variables come from ConfigMaps and Secrets":              checkSources,
		"resources are not set next to a resourcesPolicy":         checkResourcesPolicy,
		"the older name of the service account follows":           checkServiceAccount,
	} {
		t.Run(name, func(t *testing.T) { check(t, s) })
	}
}

// podSpec is a pod spec with two containers and an init container.
const podSpec = `
containers:
- {name: main, image: "nginx:1", env: [{name: A, value: a}, {name: B, value: $(A)}], resources: {limits: {cpu: 1000m}}}
- {name: log, image: "log:1", terminationMessagePath: /log}
initContainers:
- {name: prepare, image: "prepare:1"}
`

// indent puts a text below a field.
func indent(text string, columns int) string {
	return strings.ReplaceAll("\n"+strings.Trim(text, "\n"), "\n", "\n"+strings.Repeat(" ", columns))
}

// withPods is an object of a kind with its pod spec in spec.template.
func withPods(version, kind, name, spec string) string {
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {namespace: default, name: %s, labels: {app: %s}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: %s
`, version, kind, name, name, indent(spec, 6))
}

func cloneSet(name, spec string) string {
	return withPods("apps.kruise.io/v1beta1", "CloneSet", name, spec)
}

// workloads are objects of all kinds, by the word that names them, with the path of their pod spec.
func workloads(name string) map[string]struct{ text, path string } {
	nested := func(version, kind, fields, spec string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {namespace: default, name: %s}\nspec:\n%s", version, kind, name, fmt.Sprintf(fields, spec))
	}
	united := `
  selector: {matchLabels: {app: web}}
  topology: {subsets: [{name: a}]}
  template:
    advancedStatefulSetTemplate:
      metadata: {labels: {app: web}}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: %s
`
	cron := `
  schedule: "* * * * *"
  template:
    broadcastJobTemplate:
      spec:
        template:
          spec: %s
`
	template := "spec.template.spec"
	return map[string]struct{ text, path string }{
		"clone/":       {cloneSet(name, podSpec), template},
		"asts/":        {withPods("apps.kruise.io/v1beta1", "StatefulSet", name, podSpec), template},
		"ads/":         {withPods("apps.kruise.io/v1beta1", "DaemonSet", name, podSpec), template},
		"bcj/":         {nested("apps.kruise.io/v1beta1", "BroadcastJob", "\n  template:\n    spec: %s", indent(podSpec+"restartPolicy: Never\n", 6)), template},
		"ud/":          {nested("apps.kruise.io/v1beta1", "UnitedDeployment", united, indent(podSpec, 12)), "spec.template.advancedStatefulSetTemplate.spec.template.spec"},
		"acj/":         {nested("apps.kruise.io/v1beta1", "AdvancedCronJob", cron, indent(podSpec+"restartPolicy: Never\n", 12)), "spec.template.broadcastJobTemplate.spec.template.spec"},
		"deployment/":  {withPods("apps/v1", "Deployment", name, podSpec), template},
		"statefulset/": {withPods("apps/v1", "StatefulSet", name, podSpec+"\n"), template},
		"daemonset/":   {withPods("apps/v1", "DaemonSet", name, podSpec), template},
		"sidecarset/": {fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - name: main
    image: nginx:1
    env: [{name: A, value: a}, {name: B, value: $(A)}]
    podInjectPolicy: AfterAppContainer
    upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "empty:1"}
    shareVolumePolicy: {type: enabled}
    transferEnv: [{sourceContainerName: app, envName: X}]
  - {name: log, image: "log:1"}
  initContainers:
  - {name: prepare, image: "prepare:1", podInjectPolicy: BeforeAppContainer, laterField: {x: 1}}
`, name), "spec"},
	}
}

// resourceNames are what output calls the kinds of workloads.
var resourceNames = map[string]string{
	"clone/": "cloneset.apps.kruise.io", "asts/": "statefulset.apps.kruise.io", "ads/": "daemonset.apps.kruise.io", "bcj/": "broadcastjob.apps.kruise.io",
	"ud/": "uniteddeployment.apps.kruise.io", "acj/": "advancedcronjob.apps.kruise.io", "deployment/": "deployment.apps", "statefulset/": "statefulset.apps",
	"daemonset/": "daemonset.apps", "sidecarset/": "sidecarset.apps.kruise.io",
}

// types runs a command and compares its output, its errors and its exit code.
func types(t *testing.T, s *terminal.Terminal, line string, want terminal.Result) {
	t.Helper()
	got := s.TypeCommand(t, NewCommand(nil), strings.Fields(line)...)
	got.Requests = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("set %s: (-want +got)\n%s", line, diff)
	}
}

// has compares a field of an object.
func has(t *testing.T, s *terminal.Terminal, object, path, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), s.ReadField(t, object, path)); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", path, diff)
	}
}

func checkKinds(t *testing.T, s *terminal.Terminal) {
	for word, w := range workloads("web") {
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(t, w.text)
			want := s.ReadObject(t, w.text)
			named := resourceNames[word] + "/web"
			types(t, s, "image "+word+"web main=nginx:2 prepare=prepare:2", terminal.Result{Out: named + " image updated\n"})
			types(t, s, "env "+word+"web A- C=c -c log", terminal.Result{Out: named + " env updated\n"})
			types(t, s, "resources "+word+"web --limits cpu=1,memory=1Gi -c log", terminal.Result{Out: named + " resource requirements updated\n"})
			setContainer(t, want, w.path, "containers", 0, map[string]any{"image": "nginx:2"})
			setContainer(t, want, w.path, "initContainers", 0, map[string]any{"image": "prepare:2"})
			setContainer(t, want, w.path, "containers", 1, map[string]any{
				"env":       []any{map[string]any{"name": "C", "value": "c"}},
				"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
			})
			if diff := cmp.Diff(want.Object["spec"], s.ReadObject(t, w.text).Object["spec"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			types(t, s, "image "+word+"web main=nginx:2", terminal.Result{Out: named + " unchanged\n"})
			types(t, s, "env "+word+"web C=c -c log", terminal.Result{Out: named + " unchanged\n"})
			types(t, s, "resources "+word+"web --limits cpu=1000m -c log", terminal.Result{Out: named + " unchanged\n"})
			if word == "sidecarset/" {
				return
			}
			types(t, s, "sa "+word+"web robot", terminal.Result{Out: named + " serviceaccount updated\n"})
			has(t, s, w.text, w.path+".serviceAccountName", "robot\n")
			types(t, s, "serviceaccount "+word+"web robot", terminal.Result{Out: named + " unchanged\n"})
		})
	}
}

// setContainer sets fields of a container.
func setContainer(t *testing.T, object *unstructured.Unstructured, podSpec, list string, index int, fields map[string]any) {
	t.Helper()
	at := append(strings.Split(podSpec, "."), list)
	containers, _, err := unstructured.NestedSlice(object.Object, at...)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(containers[index].(map[string]any), fields)
	if err := unstructured.SetNestedSlice(object.Object, containers, at...); err != nil {
		t.Fatal(err)
	}
}

func checkSidecarSet(t *testing.T, s *terminal.Terminal) {
	set := workloads("proxy")["sidecarset/"].text
	s.CreateObjects(t, set)
	types(t, s, "image sidecarset/proxy *=x:2", terminal.Result{Out: "sidecarset.apps.kruise.io/proxy image updated\n"})
	has(t, s, set, "spec.containers", `
- env:
  - name: A
    value: a
  - name: B
    value: $(A)
  image: x:2
  name: main
  podInjectPolicy: AfterAppContainer
  shareVolumePolicy:
    type: enabled
  transferEnv:
  - envName: X
    sourceContainerName: app
  upgradeStrategy:
    hotUpgradeEmptyImage: empty:1
    upgradeType: HotUpgrade
- image: x:2
  name: log
`)
	has(t, s, set, "spec.initContainers", `
- image: x:2
  laterField:
    x: 1
  name: prepare
  podInjectPolicy: BeforeAppContainer
`)
}

func checkMistyped(t *testing.T, s *terminal.Terminal) {
	templates := "clone/NAME, asts/NAME, ads/NAME, ud/NAME, bcj/NAME, acj/NAME, deployment/NAME, statefulset/NAME or daemonset/NAME"
	all := strings.Replace(templates, "ud/NAME", "sidecarset/NAME, ud/NAME", 1)
	for line, want := range map[string]string{
		"image":                           "there is no image to set; want CONTAINER=IMAGE",
		"image clone/web":                 "there is no image to set; want CONTAINER=IMAGE",
		"image main=nginx":                "name an object; want " + all,
		"image clone/web main=":           "the image of container main is empty; want CONTAINER=IMAGE",
		"image clone/web =nginx":          `"" in "=nginx" is not the name of a container; want CONTAINER=IMAGE`,
		"image clone/web a/b=nginx":       `"a/b" in "a/b=nginx" is not the name of a container; want CONTAINER=IMAGE`,
		"image clone/web a=x clone/b":     `"clone/b" comes after an image; name the objects first and then CONTAINER=IMAGE`,
		"image clone/web a=x a=y":         "container a has two images; name each container once",
		"image clone/web *=x a=y":         "*=IMAGE is of all containers; name no other container next to it",
		"image clone/a/b main=x":          `"clone/a/b" is not the name of an object; want ` + all,
		"image pod/web main=x":            `"pod" is no kind that this command changes; want ` + all,
		"image clone --all -l a=b main=x": "--selector and --all exclude each other",
		"image clone -l a=( main=x":       `--selector is "a=(": unable to parse requirement: found '(', expected: identifier`,
		"image clone/web main=x --dry-run": `--dry-run is "unchanged"; want --dry-run=client, --dry-run=server or ` +
			"--dry-run=none",
		"image clone/web main=x -o table":           `unable to match a printer suitable for the output format "table", allowed formats are: go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml`,
		"env clone/web":                             "there is no variable to change; want KEY=VALUE, KEY-, --from or --list",
		"env A=1":                                   "name an object; want " + all,
		"env clone/web -":                           "- names no variable; want KEY=VALUE, or KEY- to remove one",
		"env clone/web A=1 clone/b":                 "name the objects first, and then KEY=VALUE or KEY-",
		"env clone/web A=1 A=2":                     "variable A is set twice, or set and removed; name it once",
		"env clone/web A=1 A-":                      "can not both modify and remove the same environment variable in the same command",
		"env clone/web A=1 P_A- --prefix P_":        "variable P_A is set twice, or set and removed; name it once",
		"env clone/web --list -o yaml":              "--list and --output exclude each other",
		"env clone/web A=1 --keys a":                "--keys are those of a ConfigMap or Secret; name it with --from",
		"env clone/web --from pod/x":                `--from is "pod/x"; want configmap/NAME or secret/NAME`,
		"env clone/web --from secret":               `--from is "secret"; want configmap/NAME or secret/NAME`,
		"env clone/web --from secret/a/b":           `--from is "secret/a/b"; want configmap/NAME or secret/NAME`,
		"env clone/web A=1 -c [":                    `--containers is "["; want the name of a container, with * for any part of it`,
		"resources clone/web":                       "there is nothing to set; want --limits or --requests, such as --limits cpu=1,memory=1Gi",
		"resources clone/web --limits cpu":          `--limits has "cpu"; want NAME=QUANTITY, such as cpu=1`,
		"resources clone/web --limits cpu=1,cpu=2":  "--limits has cpu twice; name it once",
		"resources clone/web --limits memory=1Gx":   `--limits has "1Gx" for memory; want a quantity of 0 or more, such as 500m or 1Gi`,
		"resources clone/web --requests memory=-1":  `--requests has "-1" for memory; want a quantity of 0 or more, such as 500m or 1Gi`,
		"resources clone/web --requests cpus=1":     `--requests has "cpus", which is not the name of a resource; want cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain such as example.com/gpu`,
		"resources clone/web --limits cpu=1 -c [a":  `--containers is "[a"; want the name of a container, with * for any part of it`,
		"serviceaccount clone/web":                  "want KIND/NAME... and then the name of a service account",
		"serviceaccount clone/web clone/b":          `"clone/b" is not the name of a service account; write it after the objects: ` + subdomainRule,
		"serviceaccount sidecarset/proxy robot":     "this command is not for objects of kind SidecarSet; want " + templates,
		"serviceaccount clone/a sidecarset/p robot": "this command is not for objects of kind SidecarSet; want " + templates,
		"nothing": `unknown command "nothing" for "regatta set"; regatta set --help lists them`,
	} {
		t.Run(line, func(t *testing.T) {
			got := s.TypeCommand(t, NewCommand(nil), strings.Fields(line)...)
			if diff := cmp.Diff(terminal.Result{Err: want, Code: exit.Usage}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("an image with a space", func(t *testing.T) {
		got := s.TypeCommand(t, NewCommand(nil), "image", "clone/web", "main=nginx 1")
		if diff := cmp.Diff(terminal.Result{Err: `the image of container main is "nginx 1"; an image has no spaces`, Code: exit.Usage}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

const subdomainRule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
	"(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

func checkUnknownContainers(t *testing.T, s *terminal.Terminal) {
	many := "containers:\n"
	for i := range 1000 {
		many += fmt.Sprintf("- {name: c%d, image: x}\n", i)
	}
	s.CreateObjects(t, cloneSet("web", podSpec), cloneSet("many", many), cloneSet("none", "containers: []"))
	before := s.ReadField(t, cloneSet("web", ""), "spec")
	types(t, s, "image clone/web main=nginx:2 sidecar=x", terminal.Result{
		Err: "changing CloneSet web: there is no container sidecar; there are main, log, prepare", Code: exit.Refused,
	})
	types(t, s, "resources clone/web --limits cpu=2 -c side*", terminal.Result{
		Err: `changing CloneSet web: --containers is "side*", which matches no container; there are main, log, prepare`, Code: exit.Refused,
	})
	types(t, s, "image clone/none *=x", terminal.Result{Err: "changing CloneSet none: spec.template.spec has no containers", Code: exit.Refused})
	has(t, s, cloneSet("web", ""), "spec", before)
	types(t, s, "image clone many sidecar=x", terminal.Result{
		Err: "changing CloneSet many: there is no container sidecar; there are c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19 and 980 more", Code: exit.Refused,
	})
	types(t, s, "image clone/many c999=y", terminal.Result{Out: "cloneset.apps.kruise.io/many image updated\n"})
	if got := s.ReadField(t, cloneSet("many", ""), "spec.template.spec.containers"); strings.Count(got, "image: x\n") != 999 || !strings.HasSuffix(got, "- image: \"y\"\n  name: c999\n") {
		t.Errorf("got\n%s", got)
	}
	// An object that has the container is changed, and one that has not is refused.
	types(t, s, "image clone/none clone/web main=nginx:3", terminal.Result{
		Out: "cloneset.apps.kruise.io/web image updated\n", Err: "changing CloneSet none: spec.template.spec has no containers", Code: exit.Refused,
	})
	types(t, s, "image clone/gone main=nginx:3", terminal.Result{Err: "there is no CloneSet gone in namespace default", Code: exit.Failed})
}

func checkOddShapes(t *testing.T, s *terminal.Terminal) {
	for _, tc := range []struct{ name, spec, line, want string }{
		{"no-list", "containers: {name: main}", "image clone/no-list main=x", "spec.template.spec.containers is an object; it must be a list"},
		{"no-list-init", "containers: [{name: main}]\ninitContainers: x", "image clone/no-list-init main=x", "spec.template.spec.initContainers is a string; it must be a list"},
		{"no-map", "containers: [{name: main}, 5]", "image clone/no-map main=x", "spec.template.spec.containers[1] is a number; it must be an object"},
		{"null-entry", "containers: [null]", "image clone/null-entry *=x", "spec.template.spec.containers[0] is null; it must be an object"},
		{"no-name", "containers: [{name: main}, {image: x}]", "image clone/no-name main=x", "spec.template.spec.containers[1].name is missing or no string"},
		{"odd-name", "containers: [{name: [main]}]", "image clone/odd-name *=x", "spec.template.spec.containers[0].name is missing or no string"},
		{"no-env", "containers: [{name: main, env: x}]", "env clone/no-env A=1", "spec.template.spec.containers[0].env is a string; it must be a list"},
		{"odd-env", "containers: [{name: main, env: [{name: A}, []]}]", "env clone/odd-env A=1", "spec.template.spec.containers[0].env[1] is a list; it must be an object"},
		{"half-env", "containers: [{name: ok}, {name: main, env: [{value: x}]}]", "env clone/half-env A=1", "spec.template.spec.containers[1].env[0].name is missing or no string"},
		{"no-resources", "containers: [{name: ok}, {name: main, resources: []}]", "resources clone/no-resources --limits cpu=1", "spec.template.spec.containers[1].resources is a list; it must be an object"},
		{"no-limits", "containers: [{name: main, resources: {limits: 5}}]", "resources clone/no-limits --limits cpu=1", "spec.template.spec.containers[0].resources.limits is a number; it must be an object"},
		{"odd-sa", "containers: []\nserviceAccountName: {}", "sa clone/odd-sa robot", "reading spec.template.spec.serviceAccountName: .spec.template.spec.serviceAccountName accessor error: map[] is of the type map[string]interface {}, expected string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.CreateObjects(t, cloneSet(tc.name, tc.spec))
			before := s.ReadField(t, cloneSet(tc.name, ""), "metadata.resourceVersion")
			types(t, s, tc.line, terminal.Result{Err: "changing CloneSet " + tc.name + ": " + tc.want, Code: exit.Failed})
			has(t, s, cloneSet(tc.name, ""), "metadata.resourceVersion", before)
		})
	}
	s.CreateObjects(t, cloneSet("no-spec", "5"))
	types(t, s, "image clone/no-spec main=x", terminal.Result{Err: "changing CloneSet no-spec: CloneSet no-spec has no pod spec at spec.template.spec", Code: exit.Failed})
	s.CreateObjects(t, cloneSet("odd-value", "containers: [{name: main, env: [{name: A, value: 5}, {name: B, valueFrom: x}], resources: {limits: {cpu: [1], memory: 5}}}]"))
	types(t, s, "env clone/odd-value --list", terminal.Result{
		Err: "reading CloneSet odd-value: reading spec.template.spec.containers[0].env[0]: .value accessor error: 5 is of the type int64, expected string", Code: exit.Failed,
	})
	types(t, s, "env clone/odd-value A=1 --list", terminal.Result{
		Err: "reading CloneSet odd-value: spec.template.spec.containers[0].env[1].valueFrom is a string; it must be an object", Code: exit.Failed,
	})
	types(t, s, "resources clone/odd-value --limits cpu=1,memory=5", terminal.Result{Out: "cloneset.apps.kruise.io/odd-value resource requirements updated\n"})
	has(t, s, cloneSet("odd-value", ""), "spec.template.spec.containers", `
- env:
  - name: A
    value: 5
  - name: B
    valueFrom: x
  name: main
  resources:
    limits:
      cpu: "1"
      memory: 5
`)
	// A number that a float64 cannot have stays as it is.
	s.CreateObjects(t, cloneSet("numbers", "containers: [{name: main, securityContext: {runAsUser: 9007199254740993}, x: 1.5}]"))
	types(t, s, "image clone/numbers main=x", terminal.Result{Out: "cloneset.apps.kruise.io/numbers image updated\n"})
	has(t, s, cloneSet("numbers", ""), "spec.template.spec.containers", `
- image: x
  name: main
  securityContext:
    runAsUser: 9007199254740993
  x: 1.5
`)
}

func checkDryRun(t *testing.T, s *terminal.Terminal) {
	web := withPods("apps/v1", "Deployment", "web", podSpec)
	s.CreateObjects(t, web)
	before := s.ReadField(t, web, "metadata.resourceVersion")
	for mode, printed := range map[string]string{"client": " (dry run)", "server": " (server dry run)"} {
		types(t, s, "image deploy/web main=nginx:2 --dry-run="+mode, terminal.Result{Out: "deployment.apps/web image updated" + printed + "\n"})
		types(t, s, "image deploy/web main=nginx:1 --dry-run="+mode, terminal.Result{Out: "deployment.apps/web unchanged" + printed + "\n"})
		types(t, s, "image deploy/web main=nginx:2 -o name --dry-run="+mode, terminal.Result{Out: "deployment.apps/web\n"})
		got := s.TypeCommand(t, NewCommand(nil), "sa", "deploy/web", "robot", "-o", "yaml", "--dry-run="+mode)
		changed := terminal.ParseObject(t, got.Out)
		if name, _, _ := unstructured.NestedString(changed.Object, "spec", "template", "spec", "serviceAccountName"); name != "robot" || changed.GetName() != "web" {
			t.Errorf("got %+v", got)
		}
	}
	has(t, s, web, "metadata.resourceVersion", before)
	types(t, s, "image deploy/web main=nginx:2 -o jsonpath={.spec.template.spec.containers[0].image}", terminal.Result{Out: "nginx:2"})
	// The API server checks a dry run of its own.
	types(t, s, "resources deploy/web -c log --limits cpu=1 --requests cpu=2 --dry-run=server", terminal.Result{
		Err: `changing Deployment of Kubernetes web: Deployment.apps "web" is invalid: spec.template.spec.containers[1].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`, Code: exit.Refused,
	})
}

func checkSelection(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("a", podSpec), cloneSet("b", podSpec))
	types(t, s, "image clone -l app=b main=nginx:2", terminal.Result{Out: "cloneset.apps.kruise.io/b image updated\n"})
	types(t, s, "env clone --all A=1 -c main", terminal.Result{Out: "cloneset.apps.kruise.io/a env updated\ncloneset.apps.kruise.io/b env updated\n"})
	types(t, s, "sa clone --all robot", terminal.Result{Out: "cloneset.apps.kruise.io/a serviceaccount updated\ncloneset.apps.kruise.io/b serviceaccount updated\n"})
	types(t, s, "image clone -l app=c main=nginx:2", terminal.Result{Err: "no CloneSet in namespace default is selected", Code: exit.Failed})
}

func checkConflict(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", podSpec))
	var patches atomic.Int32
	s.BeforeRequests(t, func(r *http.Request) {
		if r.Method != http.MethodPatch || patches.Add(1) > 1 {
			return
		}
		other := terminal.ParseObject(t, cloneSet("web", ""))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"other"},{"name":"new","image":"new"}]}}}}`))
		if err := s.Patch(t.Context(), other, patch); err != nil {
			t.Error(err)
		}
	})
	types(t, s, "image clone/web main=nginx:2", terminal.Result{Out: "cloneset.apps.kruise.io/web image updated\n"})
	has(t, s, cloneSet("web", ""), "spec.template.spec.containers", "- image: nginx:2\n  name: main\n- image: new\n  name: new\n")
	if n := patches.Load(); n != 2 {
		t.Errorf("it was patched %d times", n)
	}
}

func checkDeletion(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", podSpec))
	s.BeforeRequests(t, func(r *http.Request) {
		if r.Method == http.MethodPatch {
			if err := s.Delete(t.Context(), terminal.ParseObject(t, cloneSet("web", ""))); err != nil {
				t.Error(err)
			}
		}
	})
	types(t, s, "image clone/web main=nginx:2", terminal.Result{Err: "CloneSet web was deleted", Code: exit.Failed})
}

func checkSubset(t *testing.T, s *terminal.Terminal) {
	owned := strings.Replace(cloneSet("web-a", podSpec), "metadata: {", "metadata: {ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, name: web, uid: u, controller: true}], ", 1)
	other := strings.Replace(cloneSet("web-b", podSpec), "metadata: {", "metadata: {ownerReferences: [{apiVersion: example.com/v1, kind: UnitedDeployment, name: web, uid: u, controller: true}], ", 1)
	s.CreateObjects(t, owned, other)
	types(t, s, "image clone/web-a clone/web-b main=nginx:2", terminal.Result{
		Out: "cloneset.apps.kruise.io/web-b image updated\n",
		Err: "CloneSet web-a is of UnitedDeployment web, which would undo the change; change the UnitedDeployment instead", Code: exit.Refused,
	})
}

func TestNoKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", os.DevNull)
	s := &terminal.Terminal{}
	got := s.TypeCommand(t, NewCommand(nil), "image", "clone/web", "main=x")
	if got.Code != exit.Failed || !strings.HasPrefix(got.Err, "finding the cluster: ") {
		t.Errorf("got %+v", got)
	}
}
