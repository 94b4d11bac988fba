// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// counting counts the writes of statuses of objects of one namespace.
type counting struct {
	client.Client
	statuses *atomic.Int32
}

// paced is the namespace where status writes are counted.
const paced = "paced"

func (c counting) Status() client.SubResourceWriter {
	return countingStatus{c.Client.Status(), c.statuses}
}

type countingStatus struct {
	client.SubResourceWriter
	statuses *atomic.Int32
}

func (c countingStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if o.GetNamespace() == paced {
		c.statuses.Add(1)
	}
	return c.SubResourceWriter.Update(ctx, o, opts...)
}

// cluster is an API server with the CRDs, webhooks and conversions of the manager, and the
// controller. Nothing acts on the workloads of subsets but the test.
type cluster struct {
	*testing.T
	api      client.Client
	config   *rest.Config
	statuses *atomic.Int32
	// namespace is where the test is, and name that of its UnitedDeployment.
	namespace, name string
}

// newCluster is a cluster whose controller runs.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := serve(t)
	c.control()
	return c
}

// serve is a cluster without the controller.
func serve(t *testing.T) *cluster {
	t.Helper()
	env, scheme := apiserver.Start(t), apiserver.Scheme(t)
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := server.HandlersByPath(scheme, api, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	apiserver.ServeWebhooks(t, env, handlers, server.ConvertPath)
	return &cluster{T: t, api: api, config: env.Config, statuses: &atomic.Int32{}, name: "web"}
}

// control starts the controller.
func (c *cluster) control() {
	c.Helper()
	mgr, err := ctrl.NewManager(c.config, ctrl.Options{
		Scheme: c.api.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	c.do(err)
	c.do(rollout.AddIndexes(c.Context(), mgr.GetFieldIndexer()))
	deps := reconcile.Deps{
		Client: counting{mgr.GetClient(), c.statuses}, Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorderFor(kruise.UnitedDeploymentComponent),
		Engine: newEngine(c.T), StatusInterval: 500 * time.Millisecond,
	}
	c.do(New(deps).SetupWithManager(c.Context(), mgr))
	apiserver.Run(c, mgr)
}

// in is the cluster in a namespace of its own.
func (c *cluster) in(t *testing.T, namespace string) *cluster {
	t.Helper()
	own := &cluster{T: t, api: c.api, statuses: c.statuses, namespace: namespace, name: "web"}
	own.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return own
}

// create creates an object, as soon as the API server serves its kind and its webhooks.
func (c *cluster) create(o client.Object) {
	c.Helper()
	apiserver.Eventually(c, "creating "+o.GetName(), func() string {
		fresh := o.DeepCopyObject().(client.Object)
		if err := c.api.Create(c.Context(), fresh); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (c *cluster) do(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace, Name: c.name}
}

func (c *cluster) get() *kruise.UnitedDeployment {
	c.Helper()
	d := &kruise.UnitedDeployment{}
	c.do(c.api.Get(c.Context(), c.key(), d))
	return d
}

// edit changes the UnitedDeployment, as often as the controller's status comes between.
func (c *cluster) edit(change func(*kruise.UnitedDeployment)) {
	c.Helper()
	d := c.get()
	was := d.DeepCopy()
	change(d)
	c.do(c.api.Patch(c.Context(), d, client.MergeFrom(was)))
}

// children are the workloads of the subsets, by subset.
func (c *cluster) children() map[string]*child {
	c.Helper()
	out := map[string]*child{}
	for _, k := range allKinds() {
		list := k.makeList()
		c.do(c.api.List(c.Context(), list, client.InNamespace(c.namespace)))
		found, err := ownedChildren(c.get(), k, list)
		c.do(err)
		for _, one := range found {
			if _, twice := out[one.subsetName()]; twice {
				c.Fatalf("subset %s has two workloads", one.subsetName())
			}
			out[one.subsetName()] = one
		}
	}
	return out
}

// counted are the replicas of workloads, such as "a=3 b=7".
func counted(all map[string]*child) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, fmt.Sprintf("%s=%d", name, all[name].replicas))
	}
	return strings.Join(out, " ")
}

// have waits until the workloads have so many replicas.
func (c *cluster) have(want string) map[string]*child {
	c.Helper()
	var all map[string]*child
	apiserver.Eventually(c, "the subsets have "+want, func() string {
		all = c.children()
		if got := counted(all); got != want {
			return fmt.Sprintf("they have %q", got)
		}
		return ""
	})
	return all
}

func (c *cluster) counts() string {
	c.Helper()
	return counted(c.whole())
}

// settled waits until the status is of the spec and says what it should.
func (c *cluster) settled(what string, is func(*kruise.UnitedDeploymentStatus) bool) *kruise.UnitedDeploymentStatus {
	c.Helper()
	var d *kruise.UnitedDeployment
	apiserver.Eventually(c, what, func() string {
		if d = c.get(); d.Status.ObservedGeneration == d.Generation && is(&d.Status) {
			return ""
		}
		return fmt.Sprintf("generation %d, %+v", d.Generation, d.Status)
	})
	return &d.Status
}

// run does what the controllers of workloads would: the pods of a subset that its partition
// does not keep are of the new revision, and all are ready.
func (c *cluster) run() {
	c.Helper()
	c.runEach(c.whole())
}

func (c *cluster) runEach(workloads map[string]*child) {
	c.Helper()
	for name, one := range workloads {
		c.do(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			err := client.IgnoreNotFound(c.status(one))
			if err != nil { // the controller wrote it at the same time, and may ask for something else now
				if now := c.children()[name]; now != nil {
					one = now
				}
			}
			return err
		}))
		if one.countReady {
			c.pods(one)
		}
	}
}

func (c *cluster) status(one *child) error {
	c.Helper()
	n, updated := one.replicas, one.replicas-one.partition
	switch o := one.Object.(type) {
	case *kruise.CloneSet:
		o.Status.ObservedGeneration, o.Status.Replicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas, o.Status.UpdatedReplicas, o.Status.UpdatedReadyReplicas = o.Generation, n, n, n, updated, updated
	case *kruise.StatefulSet:
		o.Status.ObservedGeneration, o.Status.Replicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas, o.Status.UpdatedReplicas, o.Status.UpdatedReadyReplicas = o.Generation, n, n, n, updated, updated
	case *appsv1.StatefulSet:
		o.Status.ObservedGeneration, o.Status.Replicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas, o.Status.UpdatedReplicas = o.Generation, n, n, n, updated
	case *appsv1.Deployment:
		o.Status.ObservedGeneration, o.Status.Replicas, o.Status.ReadyReplicas, o.Status.UpdatedReplicas, o.Status.AvailableReplicas = o.Generation, n, n, n, n
	default:
		c.Fatalf("a %T has no status here", one.Object)
	}
	return c.api.Status().Update(c.Context(), one.Object)
}

// pods are those of a workload whose status does not say how many updated ones are ready.
func (c *cluster) pods(one *child) {
	c.Helper()
	owner, kind := one.Object, one.kind.GroupVersionKind
	if one.kind.Kind == "Deployment" {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: one.GetName() + "-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		}, Spec: appsv1.ReplicaSetSpec{Selector: one.selector, Template: *templateOf(one)}}
		if err := c.api.Get(c.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			c.do(c.api.Create(c.Context(), set))
		}
		owner, kind = set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	}
	for n := range one.replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: fmt.Sprintf("%s-%d", one.GetName(), n), Labels: maps.Clone(templateOf(one).Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		}, Spec: *templateOf(one).Spec.DeepCopy()}
		had := &corev1.Pod{}
		if err := c.api.Get(c.Context(), client.ObjectKeyFromObject(pod), had); err == nil {
			if n < one.partition {
				continue
			}
			c.do(c.api.Delete(c.Context(), had, client.GracePeriodSeconds(0)))
		}
		c.do(c.api.Create(c.Context(), pod))
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		c.do(c.api.Status().Update(c.Context(), pod))
	}
}

// told are the events of a reason.
func (c *cluster) told(reason string) (out []string) {
	c.Helper()
	list := &corev1.EventList{}
	c.do(c.api.List(c.Context(), list, client.InNamespace(c.namespace)))
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Kind == "UnitedDeployment" {
			out = append(out, e.Message)
		}
	}
	slices.Sort(out)
	return out
}

// stays fails where a workload of a subset is written though nothing changes: the defaults of
// the API server and of webhooks must not look like a difference.
func (c *cluster) stays(what string) {
	c.Helper()
	before := c.versions()
	time.Sleep(300 * time.Millisecond)
	d := c.get()
	c.do(c.api.Patch(c.Context(), d, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec": {"revisionHistoryLimit": %d}}`, *d.Spec.RevisionHistoryLimit+1))))
	c.settled(what, func(*kruise.UnitedDeploymentStatus) bool { return true })
	if after := c.versions(); !maps.Equal(before, after) {
		c.Errorf("%s: the workloads of subsets had the versions %v, and have %v", what, before, after)
	}
}

// whole are the workloads of all subsets, once there are all.
func (c *cluster) whole() map[string]*child {
	c.Helper()
	var all map[string]*child
	apiserver.Eventually(c, "a workload for each subset", func() string {
		if all = c.children(); len(all) != len(c.get().Spec.Topology.Subsets) {
			return fmt.Sprintf("there are %q", counted(all))
		}
		return ""
	})
	return all
}

// versions are the resource versions of the workloads, by their kinds and names.
func (c *cluster) versions() map[string]string {
	c.Helper()
	out := map[string]string{}
	for _, one := range c.whole() {
		out[one.kind.Kind+" "+one.GetName()] = one.GetResourceVersion()
	}
	return out
}
