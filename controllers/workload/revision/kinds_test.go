// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cloneset"
	"github.com/regatta-sh/regatta/controllers/daemonset"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/sidecarset"
	"github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/statefulset"
	"github.com/regatta-sh/regatta/controllers/uniteddeployment"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// historyCase is a workload of one kind some of whose writes are refused for good.
type historyCase struct {
	workload client.Object
	// more are other objects that are there at first.
	more   []client.Object
	refuse func(faultinjection.Call) bool
	setUp  func(env faultinjection.Environment, e *engine.Engine) reconcile.Reconciler
	image  func(client.Object, string)
	// most are the revisions that may be there: current, update and one that is idle.
	most int
	// says is what the status says of it.
	says string
	// runsPods has pods become ready.
	runsPods bool
}

var webLabels = map[string]string{"app": "web"}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: webLabels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
}

func named() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}
}

func rolloutOf(kind func(env faultinjection.Environment) rollout.Kind) func(faultinjection.Environment, *engine.Engine) reconcile.Reconciler {
	return func(env faultinjection.Environment, e *engine.Engine) reconcile.Reconciler {
		return rollout.New(kind(env), reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock},
			rollout.WithWindow(inflight.NewFixed(1)), rollout.WithParallelWrites(1))
	}
}

func refuseCreates(kind string) func(faultinjection.Call) bool {
	return func(c faultinjection.Call) bool { return c.Verb == "create" && c.Kind == kind }
}

func selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: webLabels} }

func ofCloneSet(*testing.T) historyCase {
	set := &kruise.CloneSet{ObjectMeta: named(), Spec: kruise.CloneSetSpec{
		Replicas: ptr.To[int32](2), Selector: selector(), Template: podTemplate(), RevisionHistoryLimit: ptr.To[int32](1),
	}}
	return historyCase{
		workload: set, refuse: refuseCreates("Pod"), most: 3,
		setUp: rolloutOf(func(faultinjection.Environment) rollout.Kind { return cloneset.New(cloneset.Gates{}, false) }),
		image: func(o client.Object, image string) {
			o.(*kruise.CloneSet).Spec.Template.Spec.Containers[0].Image = image
		},
	}
}

func ofStatefulSet(*testing.T) historyCase {
	set := &kruise.StatefulSet{ObjectMeta: named(), Spec: kruise.StatefulSetSpec{
		Replicas: ptr.To[int32](2), Selector: selector(), Template: podTemplate(), RevisionHistoryLimit: ptr.To[int32](1),
	}}
	return historyCase{
		workload: set, refuse: refuseCreates("Pod"), most: 3,
		setUp: rolloutOf(func(faultinjection.Environment) rollout.Kind { return statefulset.New(statefulset.Gates{}) }),
		image: func(o client.Object, image string) {
			o.(*kruise.StatefulSet).Spec.Template.Spec.Containers[0].Image = image
		},
	}
}

func ofDaemonSet(*testing.T) historyCase {
	set := &kruise.DaemonSet{ObjectMeta: named(), Spec: kruise.DaemonSetSpec{
		Selector: selector(), Template: podTemplate(), RevisionHistoryLimit: ptr.To[int32](1),
		UpdateStrategy: kruise.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &kruise.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromInt(1))}},
	}}
	return historyCase{
		workload: set, more: []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}}}},
		refuse: refuseCreates("Pod"), most: 3,
		setUp: rolloutOf(func(faultinjection.Environment) rollout.Kind { return daemonset.New(daemonset.Gates{}, true) }),
		image: func(o client.Object, image string) {
			o.(*kruise.DaemonSet).Spec.Template.Spec.Containers[0].Image = image
		},
	}
}

func ofSidecarSet(t *testing.T) historyCase {
	set := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "set", Generation: 1}, Spec: kruise.SidecarSetSpec{
		Selector: selector(), RevisionHistoryLimit: ptr.To[int32](3), // of all
		Containers: []kruise.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "web:1"}, PodInjectPolicy: kruise.BeforeAppContainerType}},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u0", Labels: webLabels}, Spec: podTemplate().Spec}
	if err := injection.ApplySets(pod, []injection.Set{{Name: set.Name, Spec: &set.Spec}}, injection.Options{Now: time.Unix(1_700_000_000, 0)}); err != nil {
		t.Fatal(err)
	}
	return historyCase{
		workload: set, more: []client.Object{pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop"}}}},
		refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" }, most: 3,
		setUp: rolloutOf(func(env faultinjection.Environment) rollout.Kind {
			return sidecarset.New(env.Client, "kruise-system", env.Events)
		}),
		image: func(o client.Object, image string) { o.(*kruise.SidecarSet).Spec.Containers[0].Image = image },
	}
}

func ofUnitedDeployment(*testing.T) historyCase {
	d := &kruise.UnitedDeployment{ObjectMeta: named(), Spec: kruise.UnitedDeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: selector(), RevisionHistoryLimit: ptr.To[int32](1),
		Template: kruise.SubsetTemplate{CloneSetTemplate: &kruise.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: webLabels}, Spec: kruise.CloneSetSpec{Template: podTemplate()}}},
		Topology: kruise.Topology{Subsets: []kruise.Subset{{Name: "a"}, {Name: "b"}}},
	}}
	return historyCase{
		workload: d, refuse: refuseCreates("CloneSet"), most: 3,
		setUp: func(env faultinjection.Environment, e *engine.Engine) reconcile.Reconciler {
			return uniteddeployment.New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		image: func(o client.Object, image string) {
			o.(*kruise.UnitedDeployment).Spec.Template.CloneSetTemplate.Spec.Template.Spec.Containers[0].Image = image
		},
	}
}

// refuseStatus refuses the writes of a workload's status. Its pods run.
func (tc *historyCase) refuseStatus(kind string) {
	tc.refuse = func(c faultinjection.Call) bool { return c.Kind == kind && c.Subresource == "status" }
	tc.says, tc.runsPods = "", true // the status cannot tell it, and the log of the manager does
}

// Each edit of a workload that always fails would leave one more revision, without a bound. One in use stays.
func TestAllKindsTruncateTheirHistoryWhileSomethingFails(t *testing.T) {
	e := rules.Engine(t, "")
	for name, of := range map[string]func(*testing.T) historyCase{
		"CloneSet": ofCloneSet, "StatefulSet": ofStatefulSet, "DaemonSet": ofDaemonSet, "SidecarSet": ofSidecarSet, "UnitedDeployment": ofUnitedDeployment,
	} {
		t.Run(name, func(t *testing.T) {
			tc := of(t)
			tc.says = "an admission webhook refuses it"
			tc.run(t, e, name)
		})
		t.Run(name+" whose status is refused", func(t *testing.T) {
			tc := of(t)
			tc.refuseStatus(name)
			tc.run(t, e, name)
		})
	}
}

// edits is how often a workload gets another image.
const edits = 7

// edit gives the workload its next image once there is a revision of the last one.
func (tc *historyCase) edit(c *faultinjection.Cluster) {
	o := tc.workload.DeepCopyObject().(client.Object)
	c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(o), o))
	if n := o.GetGeneration(); n < edits && hasRevisionOf(c, fmt.Sprintf(`"web:%d"`, n)) {
		o.SetGeneration(n + 1)
		tc.image(o, fmt.Sprint("web:", n+1))
		c.Must(c.Client.Update(c.Context(), o))
	}
}

// run edits the workload while writes are refused, and counts its revisions.
func (tc *historyCase) run(t *testing.T, e *engine.Engine, kind string) {
	t.Helper()
	var refused int
	faultinjection.Scenario{
		Objects:  append([]client.Object{tc.workload}, tc.more...),
		Build:    indexAll,
		New:      func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler { return tc.setUp(env, e) },
		Requests: faultinjection.RequestFor(tc.workload),
		Watches:  map[string]faultinjection.Changes{kind: faultinjection.ChangesOfSpec},
		Others: func(c *faultinjection.Cluster) {
			if tc.runsPods {
				faultinjection.RunPods(c)
			}
			tc.edit(c)
		},
		Delay: 10 * time.Minute,
	}.RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool {
			if tc.refuse(c) {
				refused++
				return true
			}
			return false
		},
		Says: tc.says,
		Resolve: func(c *faultinjection.Cluster) {
			var names []string
			list := &appsv1.ControllerRevisionList{}
			c.Must(c.Client.List(c.Context(), list))
			for _, rev := range list.Items {
				names = append(names, rev.Name)
			}
			o := tc.workload.DeepCopyObject().(client.Object)
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(o), o))
			if refused == 0 || o.GetGeneration() != edits || len(names) > tc.most {
				slices.Sort(names)
				t.Errorf("%d writes were refused of generation %d, and the revisions are %v", refused, o.GetGeneration(), names)
			}
		},
		Reaches: func(*faultinjection.Cluster) string { return "" },
	})
}

// hasRevisionOf reports whether a revision records an image.
func hasRevisionOf(c *faultinjection.Cluster, image string) bool {
	list := &appsv1.ControllerRevisionList{}
	c.Must(c.Client.List(c.Context(), list))
	return slices.ContainsFunc(list.Items, func(rev appsv1.ControllerRevision) bool { return strings.Contains(string(rev.Data.Raw), image) })
}

func indexAll(b *fake.ClientBuilder) {
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}, &kruise.CloneSet{}, &kruise.StatefulSet{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}} {
		b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
	}
	b.WithIndex(&corev1.Pod{}, sidecarset.InjectedIndex, sidecarset.InjectedIn).WithIndex(&corev1.Pod{}, matching.LabelsIndex, matching.IndexLabels).
		WithIndex(&kruise.SidecarSet{}, matching.KeysIndex, matching.IndexKeys)
}
