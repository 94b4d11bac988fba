// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/restartrequest"
)

// hostileKeys are the annotations that a manager or a node agent reads on any object. A test of package annotation finds those that
// are missing.
func hostileKeys() []string {
	return []string{
		conversiondata.NewerKey, conversiondata.OlderKey,
		policyv1alpha1.BudgetProtectOperationsKey, policyv1alpha1.BudgetProtectTotalReplicasKey, policyv1alpha1.PodNoProtectKey,
		policyv1alpha1.PodRelatedBudgetKey, policyv1alpha1.PodRelatedBudgetLegacyKey,
		restartrequest.AttemptAnnotation,
		v1beta1.OwnedByAdvancedStatefulSetKey, v1beta1.PodProbeKey, v1beta1.RestartInPlaceKey, v1beta1.SidecarSetBaseKey, v1beta1.SidecarSetCanaryKey,
		v1beta1.SidecarSetInjectionFailurePolicyKey, v1beta1.SidecarSetVersionAltPrefix + "main", v1beta1.SidecarSetVersionPrefix + "main", v1beta1.UsingEnhancedLivenessKey,
		v1beta1.AutoGeneratePersistentPodStateKey, v1beta1.CloneSetScalingExcludePreparingDeleteKey, v1beta1.CloneSetVolumeClaimTemplateHashKey,
		v1beta1.ContainerLaunchPriorityCompletedKey, v1beta1.ContainerLaunchPriorityKey, v1beta1.ContainerLaunchPriorityNativeKey, v1beta1.ContainerProbeContextKey,
		v1beta1.ContainerRecreateRequestSyncStatusesKey, v1beta1.ContainerRecreateRequestUnreadyAcquiredKey, v1beta1.FailureSeenKey,
		v1beta1.ImagePreDownloadCreatedKey, v1beta1.ImagePreDownloadIgnoredKey, v1beta1.ImagePreDownloadMinUpdatedReadyPodsKey, v1beta1.ImagePreDownloadParallelismKey,
		v1beta1.ImagePreDownloadTimeoutSecondsKey, v1beta1.ImagePullJobModeKey, v1beta1.ImagePullJobReferencesKey, v1beta1.ImagePullJobSourceKey,
		v1beta1.InPlaceUpdateGraceKey, v1beta1.InPlaceUpdateGraceLegacyKey, v1beta1.InPlaceUpdateStateKey, v1beta1.InPlaceUpdateStateLegacyKey,
		v1beta1.InjectedPersistentPodStateKey, v1beta1.LifecycleTimestampKey, v1beta1.MatchedWorkloadSpreadKey, v1beta1.PersistentPodAnnotationsKey,
		v1beta1.PodDeletionCostKey, v1beta1.PodProbeMarkerListKey, v1beta1.PreferredPersistentTopologyKey, v1beta1.ProgressiveCreatePodKey, v1beta1.RequiredPersistentTopologyKey,
		v1beta1.ResourceDistributionFromKey, v1beta1.ResourceDistributionHashCodeKey, v1beta1.RuntimeContainerMetaKey, v1beta1.ScheduledAtKey,
		v1beta1.SidecarSetHashKey, v1beta1.SidecarSetHashWithoutImageKey, v1beta1.SidecarSetInPlaceUpdateStateKey, v1beta1.SidecarSetInjectedListKey,
		v1beta1.SidecarSetRecreateMissedKey, v1beta1.SidecarSetWorkingHotUpgradeKey, v1beta1.SubsetPatchKey, v1beta1.WorkloadSpreadIgnoreExistingPodsKey,
	}
}

// hostileKinds are all kinds, with what an object of each has to say for itself once its controller has acted on it. Those
// without a manifest are made by a manager, one for each node.
func hostileKinds() []hostileKind {
	const apps, policy, node = "apps.kruise.io", "policy.kruise.io", "{.items[0].metadata.name}"
	pods := `selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "nginx:1.28"}]}}`
	job := `{spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox, command: [sleep, "1"]}]}}`
	return []hostileKind{
		{apps, "CloneSet", `replicas: 1, ` + pods, "{.status.readyReplicas}", "^1$"},
		{apps, "StatefulSet", `replicas: 1, serviceName: NAME, ` + strings.ReplaceAll(pods, "app:", "set:"), "{.status.readyReplicas}", "^1$"},
		{apps, "DaemonSet", strings.ReplaceAll(pods, "app:", "daemon:"), "{.status.numberReady}", "^[1-9]"},
		{apps, "UnitedDeployment", `replicas: 1, selector: {matchLabels: {united: NAME}}, topology: {subsets: [{name: all}]}, template: {cloneSetTemplate: {metadata: {labels: {united: NAME}}, spec: {` +
			strings.ReplaceAll(pods, "app:", "united:") + `}}}`, "{.status.readyReplicas}", "^1$"},
		{apps, "SidecarSet", `namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}, selector: {matchLabels: {app: NAME}}, containers: [{name: shipper, image: busybox, command: [sleep, "3600"]}]`,
			"{.status.matchedPods}", "^[1-9]"},
		{apps, "WorkloadSpread", `targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: NAME}, subsets: [{name: all}]`, "{.status.subsetStatuses[0].replicas}", "^1$"},
		{apps, "BroadcastJob", `template: ` + job, "{.status.succeeded}", "^[1-9]"},
		{apps, "AdvancedCronJob", `schedule: "@every 20s", template: {broadcastJobTemplate: {spec: {template: ` + job + `}}}`, "{.status.lastScheduleTime}", "."},
		{apps, "ImagePullJob", `image: "busybox:1.35", parallelism: 1, completionPolicy: {type: Always}`, "{.status.succeeded}", "^[1-9]"},
		{apps, "ImageListPullJob", `images: ["busybox:1.35"], completionPolicy: {type: Always}`, "{.status.succeeded}", "^1$"},
		{apps, "ContainerRecreateRequest", `podName: pod-NAME, containers: [{name: main}], strategy: {terminationGracePeriodSeconds: 0}`, "{.status.phase}", "^Completed$"},
		{apps, "EphemeralJob", `selector: {matchLabels: {app: NAME}}, template: {ephemeralContainers: [{name: look, image: busybox, imagePullPolicy: IfNotPresent, terminationMessagePolicy: File, targetContainerName: main, command: [ps]}]}`,
			"{.status.succeeded}", "^[1-9]"},
		{apps, "PodProbeMarker", `selector: {matchLabels: {app: NAME}}, probes: [{name: idle, containerName: main, probe: {exec: {command: [ls, /]}, periodSeconds: 1}, podConditionType: game.example/Idle}]`,
			"{.status.matchedPods}", "^[1-9]"},
		{apps, "PersistentPodState", `targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: NAME}, preferredPersistentTopology: [{preference: {nodeTopologyKeys: [kubernetes.io/hostname]}, weight: 100}]`,
			"{.status.podStates}", "."},
		{apps, "ResourceDistribution", `resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy-NAME}, data: {a: b}}, targets: {includedNamespaces: {list: [{name: NAMESPACE}]}}`, "{.status.succeeded}", "^1$"},
		{policy, "PodUnavailableBudget", `selector: {matchLabels: {app: NAME}}, maxUnavailable: 1`, "{.status.totalReplicas}", "^[1-9]"},
		{apps, "NodeImage", "", node, "."},
		{apps, "NodePodProbe", "", node, "."},
	}
}

type hostileKind struct{ group, kind, spec, says, want string }

func (k hostileKind) resource() string { return strings.ToLower(k.kind) + "s." + k.group }

// nameOf is that of the object among the objects of a namespace; the name of one that is in none has the namespace in it.
func (k hostileKind) nameOf(name, namespace string) string {
	if k.kind == "SidecarSet" || k.kind == "ResourceDistribution" {
		return name + "-" + namespace
	}
	return name
}

// create creates one object of each kind, and the pod that some of them are about: the SidecarSet first, since it concerns new pods.
func create(u *user, name string) {
	GinkgoHelper()
	rest := []string{`{apiVersion: v1, kind: Pod, metadata: {name: pod-NAME, labels: {app: NAME}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "nginx:1.28"}]}}`}
	for _, k := range hostileKinds() {
		if k.spec == "" {
			continue
		}
		manifest := fmt.Sprintf("{apiVersion: %s/v1alpha1, kind: %s, metadata: {name: %s}, spec: {%s}}", k.group, k.kind, k.nameOf(name, u.namespace), k.spec)
		if k.kind == "SidecarSet" {
			u.apply(strings.NewReplacer("NAMESPACE", u.namespace, "NAME", name).Replace(manifest))
		} else {
			rest = append(rest, manifest)
		}
	}
	// A webhook that waits for the API server may be late on a machine that is busy; what is there is applied again then.
	Eventually(func() error {
		_, err := u.pipe(strings.NewReplacer("NAMESPACE", u.namespace, "NAME", name).Replace(strings.Join(rest, "\n---\n")))
		return err
	}).Should(Succeed())
}

// hostileObjects are the objects that the texts are written to: one of each kind, and all pods that one of them has made.
func hostileObjects(ctx context.Context, u *user, name string) (out []*metav1.PartialObjectMetadata) {
	list := func(group, version, kind string, pick func(*metav1.PartialObjectMetadata) bool, opts ...client.ListOption) {
		found := &metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
		Expect(shared.k8s.List(ctx, found, opts...)).To(Succeed())
		for i := range found.Items {
			if o := &found.Items[i]; pick(o) {
				o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
				out = append(out, o)
			}
		}
	}
	// Nodes of other specs come and go, but not the one that a pod of this spec runs on.
	nodes := map[string]bool{}
	for _, pod := range u.pods(name) {
		nodes[pod.Spec.NodeName] = true
	}
	for _, k := range hostileKinds() {
		first := true
		list(k.group, "v1alpha1", k.kind, func(o *metav1.PartialObjectMetadata) bool {
			if k.spec != "" {
				return o.Name == k.nameOf(name, u.namespace) && (o.Namespace == "" || o.Namespace == u.namespace)
			}
			was := first && nodes[o.Name]
			first = first && !was
			return was
		})
	}
	list("", "v1", "Pod", func(o *metav1.PartialObjectMetadata) bool {
		return slices.Contains([]string{o.Labels["app"], o.Labels["set"], o.Labels["daemon"], o.Labels["united"]}, name)
	}, client.InNamespace(u.namespace))
	return out
}

// writeAnnotations writes a text to all keys of an object, or to halves of them where a webhook refuses them together.
func writeAnnotations(ctx context.Context, c client.Client, o *metav1.PartialObjectMetadata, text string, keys ...string) (written int) {
	all := map[string]string{}
	for _, key := range keys {
		all[key] = text
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": all}})
	Expect(err).NotTo(HaveOccurred())
	switch err := c.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, raw)); {
	case err == nil:
		return len(keys)
	case len(keys) == 1 || ctx.Err() != nil:
		return 0
	}
	half := len(keys) / 2
	return writeAnnotations(ctx, c, o, text, keys[:half]...) + writeAnnotations(ctx, c, o, text, keys[half:]...)
}

var _ = Describe("an annotation that no manager wrote, on an object of any kind", SpecPriority(1), func() {
	It("ends no manager and no node agent, and keeps no other object of the kind from being acted on", func(ctx SpecContext) {
		if !shared.real {
			Skip("no node agent runs")
		}
		u := newUser(ctx)
		for _, name := range []string{"hostile", "healthy"} {
			DeferCleanup(func() {
				for _, k := range hostileKinds() {
					if k.nameOf(name, u.namespace) != name {
						_, _ = u.try("kubectl", "delete", "--wait=false", "--ignore-not-found", k.resource(), k.nameOf(name, u.namespace))
					}
				}
			})
		}
		create(u, "hostile")
		var objects []*metav1.PartialObjectMetadata
		missing := func() (out []string) {
			objects = hostileObjects(ctx, u, "hostile")
			has := map[string]bool{}
			for _, o := range objects {
				has[o.Kind] = true
			}
			for _, k := range append(hostileKinds(), hostileKind{kind: "Pod"}) {
				if !has[k.kind] {
					out = append(out, k.kind)
				}
			}
			return out
		}
		// The NodeImage and the NodePodProbe are those of a node that a pod was scheduled to.
		Eventually(missing).Should(BeEmpty(), "kinds that have no object to write to yet")
		before := restartsOf(ctx)
		config := rest.CopyConfig(shared.config)
		config.QPS = -1 // else most of the time goes by waiting
		fast, err := client.New(config, client.Options{Scheme: shared.k8s.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		var all sync.WaitGroup
		var mu sync.Mutex
		written, kinds := 0, map[string]bool{}
		for _, o := range objects {
			all.Go(func() {
				defer GinkgoRecover()
				for _, text := range []string{"null", "[]", "-1", "{", `{"a":null}`, `{"hostile":[null]}`, `[{"name":null}]`, strings.Repeat("[", 4_000)} {
					n := writeAnnotations(ctx, fast, o, text, hostileKeys()...)
					mu.Lock()
					written += n
					kinds[o.Kind] = kinds[o.Kind] || n > 0
					mu.Unlock()
				}
			})
		}
		all.Wait()
		AddReportEntry("annotations that were written", written)
		for _, k := range hostileKinds() {
			Expect(kinds[k.kind]).To(BeTrue(), "no annotation of a %s could be written", k.kind)
		}
		create(u, "healthy")
		idle := func() (out []string) {
			for _, k := range hostileKinds() {
				if k.spec == "" {
					continue
				}
				if says := u.kubectl("get", k.resource(), k.nameOf("healthy", u.namespace), "-o", "jsonpath="+k.says); !regexp.MustCompile(k.want).MatchString(says) {
					out = append(out, k.kind+" says "+says+", and its status is "+u.kubectl("get", k.resource(), k.nameOf("healthy", u.namespace), "-o", "jsonpath={.status}"))
				}
			}
			return out
		}
		// Pods of all kinds start at once, and the node agents and kubelets have the hostile ones besides.
		Eventually(idle, 3*time.Minute).Should(BeEmpty())
		Expect(restartsOf(ctx)).To(Equal(before))
	}, SpecTimeout(10*time.Minute))
})

// restartsOf are how often the containers of managers and node agents were started again.
func restartsOf(ctx context.Context) (out []string) {
	list := &corev1.PodList{}
	Expect(shared.k8s.List(ctx, list, client.InNamespace("kruise-system"))).To(Succeed())
	for i := range list.Items {
		for _, c := range list.Items[i].Status.ContainerStatuses {
			out = append(out, fmt.Sprint(list.Items[i].Name, " ", c.RestartCount))
		}
	}
	return out
}
