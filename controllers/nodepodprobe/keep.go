// SPDX-License-Identifier: Apache-2.0

package nodepodprobe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/versions"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// probed is a pod of the node, with its markers and the liveness probes in its annotation.
type probed struct {
	pod      *corev1.Pod
	markers  []podmeta.Marker
	liveness []livenessprobe.Saved
}

// reconcileProbes writes the probes of the node, and then updates the pods by its results.
func (r *Reconciler) reconcileProbes(ctx context.Context, o *v1alpha1.NodePodProbe) (time.Duration, error) {
	if err := r.dropStalled(ctx, o); err != nil {
		return 0, err
	}
	pods, err := r.listPods(ctx, o.Name)
	if err != nil {
		return 0, err
	}
	want := make([]v1alpha1.PodProbe, 0, len(pods))
	for _, p := range pods {
		if entry := entryOf(p); len(entry.Probes) > 0 {
			want = append(want, entry)
		}
	}
	if !equality.Semantic.DeepEqual(o.Spec.PodProbes, want) {
		before := o.DeepCopy()
		o.Spec.PodProbes = want
		err := r.runWrites(func() error {
			return r.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		})
		if err != nil { // such as a conflict with the agent, which writes the status
			return 0, fmt.Errorf("writing NodePodProbe %s: %w", o.Name, err)
		}
		r.rememberWrite(o)
	}
	return r.markPods(ctx, o, pods)
}

// dropStalled removes the condition of a feature gate that was off.
func (r *Reconciler) dropStalled(ctx context.Context, o *v1alpha1.NodePodProbe) error {
	before := o.DeepCopy()
	if !meta.RemoveStatusCondition(&o.Status.Conditions, gatedkinds.Stalled) {
		return nil
	}
	err := r.runWrites(func() error {
		return r.Client.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("writing the status of NodePodProbe %s: %w", o.Name, err)
	}
	r.rememberWrite(o)
	return nil
}

// listPods returns the pods of a node that are probed, sorted by namespace and name.
func (r *Reconciler) listPods(ctx context.Context, node string) ([]probed, error) {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{nodes.Index: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	markers := map[string][]podmeta.Marker{}
	var out []probed
	for i := range list.Items {
		pod := &list.Items[i]
		if !podmeta.IsProbeable(pod) {
			continue
		}
		all, ok := markers[pod.Namespace]
		if !ok && r.markers {
			var err error
			if all, err = podmeta.List(ctx, r.Client, pod.Namespace); err != nil {
				return nil, err
			}
			markers[pod.Namespace] = all
		}
		p := probed{pod: pod}
		if r.liveness {
			p.liveness, _ = livenessprobe.Read(pod) // the controller of liveness probes reports an annotation that cannot be read
		}
		for _, m := range all {
			if m.SelectsPod(pod, false) {
				p.markers = append(p.markers, m)
			}
		}
		if len(p.markers) > 0 || len(p.liveness) > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

// entryOf returns the probes that the node is to run for a pod (PPM-02).
func entryOf(p probed) v1alpha1.PodProbe {
	out := v1alpha1.PodProbe{Name: p.pod.Name, Namespace: p.pod.Namespace, UID: string(p.pod.UID), IP: p.pod.Status.PodIP}
	for _, m := range p.markers {
		for i := range m.Spec.Probes {
			probe := &m.Spec.Probes[i]
			c := containerOf(p.pod, probe.ContainerName)
			if c == nil {
				continue
			}
			spec := *probe.Probe.DeepCopy()
			if !resolvePort(c, &spec) {
				continue
			}
			out.Probes = append(out.Probes, v1alpha1.ContainerProbe{Name: podmeta.Name(m.Name, probe.Name), ContainerName: probe.ContainerName, Probe: spec})
		}
	}
	for _, saved := range p.liveness {
		c := containerOf(p.pod, saved.Name)
		if c == nil || c.StartupProbe != nil && !livenessprobe.IsContainerStarted(p.pod, saved.Name) {
			continue
		}
		spec := v1alpha1.ContainerProbeSpec{Probe: *saved.LivenessProbe.DeepCopy()}
		spec.TerminationGracePeriodSeconds = nil // the restart request has it
		if resolvePort(c, &spec) {
			out.Probes = append(out.Probes, v1alpha1.ContainerProbe{Name: livenessprobe.ProbeName(saved.Name), ContainerName: saved.Name, Probe: spec})
		}
	}
	return out
}

// containerOf finds a container of a pod that keeps running, which may be a native sidecar.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return c
		}
	}
	return nil
}

// resolvePort replaces a port name with its number. A probe of a port that the container does not have
// is left out.
func resolvePort(c *corev1.Container, probe *v1alpha1.ContainerProbeSpec) bool {
	var port *intstr.IntOrString
	switch {
	case probe.HTTPGet != nil:
		port = &probe.HTTPGet.Port
	case probe.TCPSocket != nil:
		port = &probe.TCPSocket.Port
	}
	if port == nil || port.Type == intstr.Int {
		return true
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			*port = intstr.FromInt32(p.ContainerPort)
			return true
		}
	}
	return false
}

// markPods updates the pods by the results of the node.
func (r *Reconciler) markPods(ctx context.Context, o *v1alpha1.NodePodProbe, pods []probed) (time.Duration, error) {
	statuses := map[string]*v1alpha1.PodProbeStatus{}
	for i := range o.Status.PodProbeStatuses {
		statuses[o.Status.PodProbeStatuses[i].UID] = &o.Status.PodProbeStatuses[i]
	}
	var (
		mu    sync.Mutex
		after time.Duration
		again bool  // the cache does not show a write yet
		raced error // of a pod that was changed or deleted meanwhile
		acts  []func() error
		// failed are the errors of pods that could not be decided. They do not prevent the update of other pods.
		failed []error
	)
	done := map[string]decided{}
	for _, p := range pods {
		uid := string(p.pod.UID)
		status := statuses[uid]
		if status == nil {
			continue
		}
		results := podmeta.ResultsFromStatus(p.markers, status)
		if len(results) == 0 {
			continue
		}
		last := r.lastDecision(o.Name, uid)
		if last.written != nil && versions.IsNewer(last.written, p.pod) {
			done[uid], again = last, true
			continue
		}
		in := r.marks.BuildInput(p.pod, false, results)
		sum, err := r.inputHasher(in)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if last.sum == sum(p.pod.ResourceVersion) {
			done[uid] = decided{sum: last.sum}
			continue
		}
		patch, held, err := r.marks.DecidePatch(ctx, p.pod, in, results)
		switch {
		case err != nil:
			failed = append(failed, err)
			continue
		case held != nil:
			klog.FromContext(ctx).Info("A pod keeps its marks", "pod", klog.KObj(p.pod), "rule", held.Rule, "reason", held.Message)
			after = heldAgain
			continue
		case patch == nil:
			done[uid] = decided{sum: sum(p.pod.ResourceVersion)}
			continue
		}
		acts = append(acts, func() error {
			now, err := r.marks.Write(ctx, p.pod, patch)
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the pod is gone, or another client has written to it
				mu.Lock()
				defer mu.Unlock()
				raced = err
				return nil
			}
			if err != nil {
				failure.RecordFailure(r.Events, p.pod, err)
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done[uid] = decided{sum(now.ResourceVersion), &metav1.ObjectMeta{UID: now.UID, ResourceVersion: now.ResourceVersion}}
			return nil
		})
	}
	err := message.JoinErrors(append(failed, r.runWrites(acts...))...)
	r.rememberDecisions(o.Name, done)
	switch {
	case again:
		after = behindAgain
	case raced != nil:
		if _, ok := requeue.LoseRace(ctx, raced); ok {
			after = racedAgain
		} else if err == nil {
			err = raced
		}
	}
	return after, err
}

// inputHasher returns a hash of the input of a decision without the time, for any version of the pod.
func (r *Reconciler) inputHasher(in points.MarkersInput) (func(version string) uint64, error) {
	raw, err := json.Marshal(in.Results)
	if err != nil {
		return nil, fmt.Errorf("summing up the results of pod %s: %w", in.Pod.Name, err)
	}
	return func(version string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write(raw) // a hash takes all
		_, _ = h.Write([]byte(version + "/" + r.marks.Engine.ActiveSnapshot().Revision()))
		return h.Sum64()
	}, nil
}

// newestProbes returns the NodePodProbe of a node as the cache has it, or as it was written last, so
// that no decision is made from older results.
func (r *Reconciler) newestProbes(cached *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.known[cached.Name]
	if m.probes == nil {
		return cached
	}
	if versions.IsNewer(m.probes, cached) {
		return m.probes.DeepCopy()
	}
	m.probes = nil
	r.known[cached.Name] = m
	return cached
}

// rememberWrite keeps a NodePodProbe as it was written.
func (r *Reconciler) rememberWrite(o *v1alpha1.NodePodProbe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.known[o.Name]
	m.probes = o
	r.known[o.Name] = m
}

func (r *Reconciler) lastDecision(node, uid string) decided {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[node].pods[uid]
}

func (r *Reconciler) rememberDecisions(node string, pods map[string]decided) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.known[node]
	m.pods = pods
	r.known[node] = m
}

// forgetNode drops what is remembered of a node.
func (r *Reconciler) forgetNode(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, node)
}
