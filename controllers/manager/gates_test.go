// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/install"
)

// A gateRow says what a user of the API sees with a gate on and with it off.
type gateRow struct {
	// see is an outcome in a world.
	see     func(*world, *testing.T) string
	on, off string
	// onIn and offIn are worlds in which the gate is so, and what needs it is otherwise the same.
	onIn, offIn string
}

// The worlds: managers one after the other, each with objects of its own. As many gates as
// can be are on in the first, and off in the second.
const (
	everything = "everything"
	nothing    = "nothing"
	bare       = "bare"
	webhooks   = "no-webhooks"
)

func worlds() []*world {
	return []*world{
		{name: everything, gates: "AllAlpha=true,AllBeta=true,TemplateNoDefaults=false,LaunchPriorityNativeSidecars=true"},
		{name: nothing, gates: "AllAlpha=false,AllBeta=false,PodWebhook=true,KruiseDaemon=true,ResourcesDeletionProtection=true,PodUnavailableBudgetUpdateGate=true"},
		{name: bare, gates: "KruiseDaemon=false,ResourcesDeletionProtection=false,TemplateNoDefaults=true"},
		// Not a gate: the variable turns PodWebhook off.
		{name: webhooks, env: []string{"CUSTOM_RESOURCE_ENABLE=CloneSet,StatefulSet"}},
	}
}

// shown are the gates that an API server without nodes shows.
func shown() map[featuregate.Feature]gateRow {
	both := func(see func(*world, *testing.T) string, on, off string) gateRow {
		return gateRow{see: see, on: on, off: off, onIn: everything, offIn: nothing}
	}
	return map[featuregate.Feature]gateRow{
		features.PodWebhook:                                {see: (*world).injected, on: "b,a,main", off: "main", onIn: nothing, offIn: webhooks},
		features.KruisePodReadinessGate:                    both((*world).readinessGate, "KruisePodReady", ""),
		features.EnableSortSidecarContainerByName:          both((*world).injected, "a,b,main", "b,a,main"),
		features.EnhancedLivenessProbe:                     both((*world).liveness, "taken out", "kept"),
		features.EnablePodProbeMarkerOnServerless:          both((*world).probes, "told", ""),
		features.LaunchPriorityNativeSidecars:              both((*world).started, "main then side", "main and side"),
		features.PodProbeMarkerGate:                        both(exists("apps.kruise.io/v1alpha1", "NodePodProbe", "node"), "there", ""),
		features.KruiseDaemon:                              {see: exists("apps.kruise.io/v1beta1", "NodeImage", "node"), on: "there", off: "", onIn: nothing, offIn: bare},
		features.ImagePullJobGate:                          both((*world).pulling, "begun", "refused"),
		features.ResourceDistributionGate:                  both((*world).distributing, "there", "refused"),
		features.WorkloadSpread:                            both((*world).spreading, "1", "refused"),
		features.TemplateNoDefaults:                        {see: (*world).restartPolicy, on: "", off: "Always", onIn: bare, offIn: nothing},
		features.DefaultHostNetworkHostPortsInPodTemplates: both((*world).hostPort, "80", ""),
		features.SidecarSetPatchPodMetadataDefaultsAllowed: both((*world).patchedMetadata, "taken", "refused"),
		features.StatefulSetStartOrdinal:                   both((*world).ordinal, "3", "0"),
		features.PodIndexLabel:                             both((*world).index, "labelled", ""),
		features.StatefulSetAutoDeletePVC:                  both((*world).claimOwner, "StatefulSet", ""),
		features.CloneSetShortHash:                         both((*world).revisionLabel, "short", "long"),
		features.SidecarTerminator:                         both((*world).terminating, "requested", ""),
		features.PodUnavailableBudgetDeleteGate:            both((*world).budgetedDelete, "refused", "taken"),
		features.PodUnavailableBudgetUpdateGate:            {see: (*world).budgetedUpdate, on: "refused", off: "taken", onIn: nothing, offIn: bare},
		features.InPlacePodVerticalScaling:                 both((*world).budgetedResize, "taken", "refused"),
		features.ResourcesDeletionProtection:               {see: (*world).protectedDelete, on: "refused", off: "taken", onIn: nothing, offIn: bare},
		features.DaemonSetPruneIneligibleNodes:             both((*world).tainted, "", "updated"),
		features.DeletionProtectionForCRDCascadingGate:     both((*world).cascadingDelete, "taken", "refused"),
	}
}

// elsewhere are the gates that need containers that run, clocks or several rounds, and the
// tests that show them: a file, and a text of it.
func elsewhere() map[featuregate.Feature][2]string {
	return map[featuregate.Feature][2]string{
		features.DaemonWatchingPod:                      {"test/e2e/envmeta_test.go", "is refreshed in place where nothing but the annotation changes"},
		features.InPlaceUpdateEnvFromMetadata:           {"test/e2e/envmeta_test.go", "is refreshed by one restart where the image changes too"},
		features.InPlaceWorkloadVerticalScaling:         {"test/e2e/resize_test.go", "restarts containers whose policy asks for it"},
		features.StatefulSetAutoResizePVCGate:           {"test/e2e/claims_test.go", "grow before their pods are updated"},
		features.EnableExternalCerts:                    {"controllers/manager/manager_test.go", "--feature-gates=EnableExternalCerts=true"},
		features.CloneSetPartitionRollback:              {"controllers/cloneset/life_test.go", "&gates.PartitionRollback"},
		features.PreparingUpdateAsUpdate:                {"controllers/cloneset/preparing_test.go", "func TestAScaleOutLeavesPreparingPodsTheirUpdate"},
		features.CloneSetEventHandlerOptimization:       {"controllers/cloneset/life_test.go", "&gates.common.EventOptimization"},
		features.RecreatePodWhenChangeVCTInCloneSetGate: {"policies/cases/rollout/change.yaml", "gates: {recreateOnNewClaims: true}"},
		features.ForceDeleteTimeoutExpectationGate:      {"controllers/workload/rollout/catchup_test.go", "is given up with the gate"},
		features.PreDownloadImageForInPlaceUpdate:       {"controllers/workload/predownload/predownload_test.go", "func TestImagesArePulledAhead"},
		features.PreDownloadImageForDaemonSetUpdate:     {"controllers/workload/predownload/predownload_test.go", "func TestAnAdvancedDaemonSetPullsAheadOfPodsThatAreRecreated"},
	}
}

// Each gate is turned on and off on a real API server, and what a user sees of it differs.
func TestGates(t *testing.T) {
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	for f := range all.GetAll() {
		_, here := shown()[f]
		at, there := elsewhere()[f]
		switch {
		case slices.Contains([]featuregate.Feature{"AllAlpha", "AllBeta"}, f), here && !there:
		case !there || here:
			t.Errorf("gate %s is in %t and %t of the two tables", f, here, there)
		default:
			if text, err := os.ReadFile(filepath.Join(root, at[0])); err != nil || !strings.Contains(string(text), at[1]) {
				t.Errorf("gate %s is not shown by %q of %s: %v", f, at[1], at[0], err)
			}
		}
	}
	env := apiserver.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	port := address[strings.LastIndex(address, ":")+1:]
	if out, err := install.Helm(t, "", "install", "kruise", filepath.Join(root, "charts", "kruise"), "--kubeconfig", kubeconfig,
		"--set", "manager.replicas=0,webhookConfiguration.failurePolicy.pods=Ignore,webhookConfiguration.url=https://localhost:"+port); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	scheme := apiserver.Scheme(t)
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	rows := shown()
	var gates []featuregate.Feature
	for f := range rows {
		gates = append(gates, f)
	}
	slices.Sort(gates)
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			w.Client = api
			args := []string{"--nodeimage-creation-delay=0s"}
			if w.gates != "" {
				args = append(args, "--feature-gates="+w.gates)
			}
			p := startManager(t, env.KubeConfig, append(w.env, "WEBHOOK_PORT="+port, "WEBHOOK_HOST=localhost"), args...)
			eventually(t, "ready", p.ready)
			eventually(t, "leading", func() bool { return p.leads() == "1" })
			w.populate(t)
			for _, wants := range []bool{true, false} { // what is there first, so that what is not there had its time
				for _, f := range gates {
					row := rows[f]
					want, in := row.off, row.offIn == w.name
					if row.onIn == w.name {
						want, in = row.on, true
					}
					if !in || (want != "") != wants {
						continue
					}
					t.Run(string(f), func(t *testing.T) {
						last := ""
						defer func() { t.Logf("it shows %q", last) }()
						eventually(t, fmt.Sprintf("%q", want), func() bool {
							last = row.see(w, t)
							return last == want
						})
					})
				}
			}
			if err := p.stop(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// world is a manager with some gates, and objects in a namespace of its own.
type world struct {
	client.Client
	name, gates string
	env         []string
	owner       types.UID // of pods that are tried, as those of a Deployment have one
}

// named is a name that is no other world's, for objects of the cluster.
func (w *world) named(name string) string { return name + "-" + w.name }

// object reads a manifest; NAME in it is the world's.
func (w *world) object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAME", w.name)), &o.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(w.name)
	}
	return o
}

// attempt is what the API server makes of an object, without keeping it.
func (w *world) attempt(t *testing.T, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := w.object(t, text)
	return o, w.Create(t.Context(), o, client.DryRunAll)
}

const pods = `{terminationGracePeriodSeconds: 0, containers: [{name: main, image: "nginx:1"}]}`

// populate makes the objects that outcomes are about.
func (w *world) populate(t *testing.T) {
	t.Helper()
	for _, text := range []string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: owner}, spec: {replicas: 0, selector: {matchLabels: {of: owner}}, template: {metadata: {labels: {of: owner}}, spec: {containers: [{name: main, image: "nginx:1"}]}}}}`,
		`{apiVersion: v1, kind: Node, metadata: {name: node-NAME, labels: {world: NAME}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: sidecars-NAME}, spec: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}, selector: {matchLabels: {app: injected}},
			containers: [{name: b, image: "busybox:1", podInjectPolicy: BeforeAppContainer}, {name: a, image: "busybox:1", podInjectPolicy: BeforeAppContainer}]}}`,
		`{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {name: idle}, spec: {selector: {matchLabels: {app: probed}}, probes: [{name: idle, containerName: main, probe: {exec: {command: [/idle]}}, podConditionType: game.io/idle}]}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: warm}, spec: {image: "nginx:1.28", completionPolicy: {}, selector: {names: [node-NAME]}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {name: shared-NAME}, spec: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: shared-NAME}, data: {a: b}}, targets: {includedNamespaces: {list: [{name: NAME}]}}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {name: spread}, spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}, subsets: [{name: a, maxReplicas: 3}, {name: b}]}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: ` + pods + `}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1, serviceName: db, ordinals: {start: 3}, selector: {matchLabels: {app: db}}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain},
			volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}], template: {metadata: {labels: {app: db}}, spec: ` + pods + `}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}},
			template: {metadata: {labels: {app: agent}}, spec: {nodeSelector: {world: NAME}, containers: [{name: main, image: "nginx:1"}]}}}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: kept, labels: {policy.kruise.io/delete-protection: Always}}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: strict}, spec: {selector: {matchLabels: {app: guarded}}, maxUnavailable: 0, protectTotalReplicas: 1}}`,
		`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: updates}, spec: {selector: {matchLabels: {app: resized}}, maxUnavailable: 0, protectTotalReplicas: 1, protectOperations: [UPDATE]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: guarded, labels: {app: guarded}, annotations: {pub.kruise.io/related-pub: strict}}, spec: {nodeName: node-NAME, containers: [{name: main, image: "nginx:1"}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: resized, labels: {app: resized}, annotations: {pub.kruise.io/related-pub: updates}}, spec: {nodeName: node-NAME, containers: [{name: main, image: "nginx:1", resources: {requests: {cpu: 1}}}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: probed, labels: {app: probed}}, spec: {nodeName: node-NAME, containers: [{name: main, image: "nginx:1"}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: job}, spec: {nodeName: node-NAME, restartPolicy: Never, containers: [{name: main, image: "nginx:1"}, {name: side, image: "nginx:1", env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "true"}]}]}}`,
	} {
		o := w.object(t, text)
		switch kind := o.GetKind(); {
		case w.name == webhooks && kind == "PodUnavailableBudget", w.name == webhooks && kind == "WorkloadSpread", w.name == nothing && kind == "WorkloadSpread":
			continue // it is refused where nothing keeps it
		}
		if err := w.Create(t.Context(), o); err != nil && !strings.Contains(err.Error(), "no controller acts on objects of kind "+o.GetKind()) {
			t.Fatalf("creating %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		switch o.GetKind() {
		case "ReplicaSet":
			w.owner = o.GetUID()
		case "Node":
			// The API server taints a node that is not ready yet.
			if err := w.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))); err != nil {
				t.Fatal(err)
			}
			w.status(t, o, `{"capacity":{"cpu":"8","pods":"99"},"allocatable":{"cpu":"8","pods":"99"},"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)
		case "Pod":
			ended := ""
			if o.GetName() == "job" {
				ended = `{"name":"main","image":"nginx:1","imageID":"x","containerID":"containerd://x","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0}}},{"name":"side","image":"nginx:1","imageID":"x","containerID":"containerd://x","ready":true,"restartCount":0,"state":{"running":{}}}`
			} else {
				ended = `{"name":"main","image":"nginx:1","imageID":"x","containerID":"containerd://x","ready":true,"restartCount":0,"state":{"running":{}},"resources":{"requests":{"cpu":"1"}}}`
			}
			w.status(t, o, running(ended))
		}
	}
	w.taint(t)
}

// taint keeps new pods off the node where the DaemonSet has its pod, and updates that.
func (w *world) taint(t *testing.T) {
	t.Helper()
	eventually(t, "a pod of the DaemonSet", func() bool { return w.of(t, "agent") != nil })
	p := w.of(t, "agent")
	bound := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: w.named("node")}}
	if err := w.SubResource("binding").Create(t.Context(), p, bound); err != nil {
		t.Fatal(err)
	}
	w.status(t, p, running(`{"name":"main","image":"nginx:1","imageID":"x","containerID":"containerd://x","ready":true,"restartCount":0,"state":{"running":{}}}`))
	for _, change := range []struct {
		kind, name, patch string
	}{
		{"Node", w.named("node"), `{"spec":{"taints":[{"key":"full","effect":"NoSchedule"}]}}`},
		{"DaemonSet", "agent", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`},
	} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(map[string]string{"Node": "v1", "DaemonSet": "apps.kruise.io/v1beta1"}[change.kind])
		o.SetKind(change.kind)
		o.SetName(change.name)
		if change.kind != "Node" {
			o.SetNamespace(w.name)
		}
		if err := w.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(change.patch))); err != nil {
			t.Fatal(err)
		}
	}
}

// running is the status of a pod that runs these containers, and is ready.
func running(containers string) string {
	return `{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"ContainersReady","status":"True"},` +
		`{"type":"KruisePodReady","status":"True"},{"type":"InPlaceUpdateReady","status":"True"}],"containerStatuses":[` + containers + `]}`
}

func (w *world) status(t *testing.T, o client.Object, status string) {
	t.Helper()
	if err := w.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		t.Fatal(err)
	}
}

// exists sees whether there is an object of a name that is the world's.
func exists(version, kind, name string) func(*world, *testing.T) string {
	return func(w *world, t *testing.T) string {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(version)
		o.SetKind(kind)
		err := w.Get(t.Context(), client.ObjectKey{Namespace: w.name, Name: w.named(name)}, o)
		if err == nil {
			return "there"
		}
		if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return ""
	}
}

// field sees a field of an object of the world.
func field(kind, name string, path ...string) func(*world, *testing.T) string {
	return func(w *world, t *testing.T) string {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apps.kruise.io/v1beta1")
		o.SetKind(kind)
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.name, Name: name}, o); err != nil {
			t.Fatal(err)
		}
		v, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			return ""
		}
		return fmt.Sprint(v)
	}
}

// pulling is whether a job has begun, if another one would be taken.
func (w *world) pulling(t *testing.T) string {
	_, err := w.attempt(t, `{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: another}, spec: {image: "nginx:1.28", completionPolicy: {}}}`)
	if out := said(t, err); out != "taken" {
		return out
	}
	if field("ImagePullJob", "warm", "status", "startTime")(w, t) != "" {
		return "begun"
	}
	return ""
}

// distributing is whether a ConfigMap is there that is distributed, if another one would be taken.
func (w *world) distributing(t *testing.T) string {
	_, err := w.attempt(t, `{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {name: another-NAME}, spec: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: another}, data: {a: b}}, targets: {includedNamespaces: {list: [{name: NAME}]}}}}`)
	if out := said(t, err); out != "taken" {
		return out
	}
	return exists("v1", "ConfigMap", "shared")(w, t)
}

// tainted is whether the pod of the DaemonSet on a node that has no room for new ones took
// part in its update.
func (w *world) tainted(t *testing.T) string {
	p := w.of(t, "agent")
	if p == nil || p.DeletionTimestamp != nil {
		return "updated"
	}
	return ""
}

// pod is a pod as it would be created.
func (w *world) pod(t *testing.T, labels, annotations, more string) *corev1.Pod {
	t.Helper()
	o, err := w.attempt(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: tried, labels: {%s}, annotations: {%s}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: owner, uid: %s, controller: true}]}, spec: {containers: [{name: main, image: "nginx:1"%s}]}}`, labels, annotations, w.owner, more))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{}
	if err := json.Unmarshal(text, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) injected(t *testing.T) string {
	var names []string
	for _, c := range w.pod(t, "app: injected", "", "").Spec.Containers {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

func (w *world) readinessGate(t *testing.T) string {
	for _, g := range w.pod(t, "app: any", "", "").Spec.ReadinessGates {
		return string(g.ConditionType)
	}
	return ""
}

func (w *world) liveness(t *testing.T) string {
	p := w.pod(t, "app: any", `apps.kruise.io/using-enhanced-liveness: "true"`, `, livenessProbe: {exec: {command: [/alive]}}`)
	if p.Spec.Containers[0].LivenessProbe == nil {
		return "taken out"
	}
	return "kept"
}

func (w *world) started(t *testing.T) string {
	p := w.pod(t, "app: any", "apps.kruise.io/container-launch-priority: Ordered", `}, {name: side, image: "nginx:1"`)
	if init := p.Spec.InitContainers; len(init) == 1 && len(p.Spec.Containers) == 1 {
		return init[0].Name + " then " + p.Spec.Containers[0].Name
	}
	return p.Spec.Containers[0].Name + " and " + p.Spec.Containers[1].Name
}

func (w *world) probes(t *testing.T) string {
	if w.pod(t, "app: probed", "", "").Annotations["kruise.io/podprobe"] != "" {
		return "told"
	}
	return ""
}

// template is the template of a CloneSet as it would be created.
func (w *world) template(t *testing.T, spec string) map[string]any {
	t.Helper()
	o, err := w.attempt(t, `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: tried}, spec: {selector: {matchLabels: {app: tried}}, template: {metadata: {labels: {app: tried}}, spec: `+spec+`}}}`)
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	return out
}

func (w *world) restartPolicy(t *testing.T) string {
	policy, _, _ := unstructured.NestedString(w.template(t, pods), "restartPolicy")
	return policy
}

func (w *world) hostPort(t *testing.T) string {
	spec := w.template(t, `{hostNetwork: true, containers: [{name: main, image: "nginx:1", ports: [{containerPort: 80}]}]}`)
	containers, _, _ := unstructured.NestedSlice(spec, "containers")
	ports, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "ports")
	if port, ok := ports[0].(map[string]any)["hostPort"]; ok {
		return fmt.Sprint(port)
	}
	return ""
}

// said is whether a request was taken. An error that no webhook of ours or policy gave fails
// the test.
func said(t *testing.T, err error) string {
	t.Helper()
	switch {
	case err == nil:
		return "taken"
	case strings.Contains(err.Error(), "denied the request"), strings.Contains(err.Error(), "denied request"):
		return "refused"
	}
	t.Fatal(err)
	return ""
}

// spreading is what the status of a spread says, if another one would be taken.
func (w *world) spreading(t *testing.T) string {
	_, err := w.attempt(t, `{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {name: another}, spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: other}, subsets: [{name: a}]}}`)
	if out := said(t, err); out != "taken" {
		return out
	}
	return field("WorkloadSpread", "spread", "status", "observedGeneration")(w, t)
}

func (w *world) patchedMetadata(t *testing.T) string {
	_, err := w.attempt(t, `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: tried-NAME}, spec: {selector: {matchLabels: {app: tried}}, containers: [{name: log, image: "busybox:1"}], patchPodMetadata: [{annotations: {example.com/a: b}}]}}`)
	return said(t, err)
}

// of is the pod of a workload, nil while there is none.
func (w *world) of(t *testing.T, app string) *corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.List(t.Context(), list, client.InNamespace(w.name), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func (w *world) ordinal(t *testing.T) string {
	if p := w.of(t, "db"); p != nil {
		return strings.TrimPrefix(p.Name, "db-")
	}
	return "no pod"
}

func (w *world) index(t *testing.T) string {
	p := w.of(t, "db")
	if p == nil {
		return "no pod"
	}
	if p.Labels["apps.kubernetes.io/pod-index"] != "" {
		return "labelled"
	}
	return ""
}

func (w *world) claimOwner(t *testing.T) string {
	list := &corev1.PersistentVolumeClaimList{}
	if err := w.List(t.Context(), list, client.InNamespace(w.name)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return "no claim"
	}
	for _, ref := range list.Items[0].OwnerReferences {
		return ref.Kind
	}
	return ""
}

func (w *world) revisionLabel(t *testing.T) string {
	p := w.of(t, "web")
	switch {
	case p == nil:
		return "no pod"
	case strings.HasPrefix(p.Labels["controller-revision-hash"], "web-"):
		return "long"
	}
	return "short"
}

func (w *world) terminating(t *testing.T) string {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1beta1")
	list.SetKind("ContainerRecreateRequestList")
	if err := w.List(t.Context(), list, client.InNamespace(w.name)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 0 {
		return "requested"
	}
	return ""
}

func (w *world) guarded(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name}}
}

func (w *world) budgetedDelete(t *testing.T) string {
	return said(t, w.Delete(t.Context(), w.guarded("guarded"), client.DryRunAll))
}

func (w *world) budgetedUpdate(t *testing.T) string {
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"main","image":"nginx:2"}]}}`))
	return said(t, w.Patch(t.Context(), w.guarded("guarded"), patch, client.DryRunAll))
}

func (w *world) budgetedResize(t *testing.T) string {
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`))
	return said(t, w.SubResource("resize").Patch(t.Context(), w.guarded("resized"), patch, client.DryRunAll))
}

func (w *world) protectedDelete(t *testing.T) string {
	return said(t, w.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "kept"}}, client.DryRunAll))
}

// cascadingDelete deletes a CRD that has no objects.
func (w *world) cascadingDelete(t *testing.T) string {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "ephemeraljobs.apps.kruise.io"}, crd); err != nil {
		t.Fatal(err)
	}
	if crd.Labels["policy.kruise.io/delete-protection"] == "" {
		label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"policy.kruise.io/delete-protection":"Cascading"}}}`))
		if err := w.Patch(t.Context(), crd, label); err != nil {
			t.Fatal(err)
		}
	}
	return said(t, w.Delete(t.Context(), crd, client.DryRunAll))
}
