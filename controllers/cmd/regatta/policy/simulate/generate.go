// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// newSampleCloneSet returns a typical CloneSet.
func (s Source) newSampleCloneSet() (workload, error) {
	name := cmp.Or(s.Name, "web")
	labels := map[string]string{"app": name}
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cmp.Or(s.Namespace, metav1.NamespaceDefault), Generation: 1}}
	set.Spec = kruise.CloneSetSpec{
		Replicas: ptr.To(int32(10)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name + ":2"}}},
		},
	}
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType}
	raw, err := json.Marshal(set)
	if err != nil {
		return workload{}, fmt.Errorf("making a CloneSet: %w", err)
	}
	k, _ := kindOf(kruise.Kind("CloneSet"))
	return admitWorkload(k, raw, k.Version)
}

// generateFleet generates the pods of a workload, as they are before it is changed.
func (s Source) generateFleet(ctx context.Context, builtin fs.FS, w workload, at time.Time) (simulation.ClusterState, error) {
	before := w.copyWorkload()
	f := simulation.ClusterState{Workload: before.Object, Kind: adapters.NewFactory(w.Object), Room: map[string]int{}}
	was := before.editableFields()
	before.SetUID("")
	reflect.ValueOf(was.status).Elem().SetZero()
	zones, err := parseCounts("--zones", s.Zones, "=")
	if err != nil {
		return f, err
	}
	if was.replicas == nil {
		f.Nodes = generateNodes(zones)
	} else {
		for _, z := range zones {
			node := newNode("node-"+z.name, z.name)
			f.Nodes = append(f.Nodes, node)
			f.Room[node.Name] = z.pods
		}
	}
	after := was.template.DeepCopy()
	if err := s.updateImages(w); err != nil {
		return f, err
	}
	if len(s.Update) > 0 {
		after = w.editableFields().template
	} else if len(after.Spec.Containers) > 0 {
		was.template.Spec.Containers[0].Image += "-before"
	}
	if was.paused != nil { // it is in the way of nothing yet
		*was.paused = false
	}
	seed := s.Seed
	if was.replicas == nil { // names of pods are drawn, and the simulation must not draw those of the fleet again
		seed = ^seed
	}
	if f, err = simulation.GrowFleet(ctx, builtin, f, at, seed, simulation.WithGates(s.Gates), simulation.WithProgress(s.Progress.ReportGrowth)); err != nil {
		return f, err
	}
	now := workload{w.kind, f.Workload}
	copyPointee(now.editableFields().template, after)
	copyPointee(now.editableFields().strategy, w.editableFields().strategy)
	now.SetGeneration(now.GetGeneration() + 1)
	return f, s.labelPods(f.Pods)
}

// generatedNodes is how many nodes are generated for a kind with a pod on each node if no zones are given.
const generatedNodes = 10

// generateNodes generates the nodes of a kind that has a pod on each node.
func generateNodes(zones []count) (out []*corev1.Node) {
	if len(zones) == 0 {
		zones = []count{{"", generatedNodes}}
	}
	for _, z := range zones {
		for i := range z.pods {
			out = append(out, newNode(strings.TrimSuffix("node-"+z.name, "-")+fmt.Sprintf("-%d", i), z.name))
		}
	}
	return out
}

// newNode makes a node in a zone, in none if that is empty.
func newNode(name, zone string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if zone != "" {
		node.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	}
	return node
}

// labelPods puts labels onto the first pods that have none of that key.
func (s Source) labelPods(pods []*corev1.Pod) error {
	labels, err := parseCounts("--label", s.Labels, ":")
	if err != nil {
		return err
	}
	for _, l := range labels {
		key, value, ok := strings.Cut(l.name, "=")
		if !ok {
			return newMisuse("--label has %q, want KEY=VALUE:PODS", l.name)
		}
		left := l.pods
		for _, p := range pods {
			if _, has := p.Labels[key]; !has && left > 0 {
				p.Labels[key] = value
				left--
			}
		}
		if left > 0 {
			return newMisuse("--label %s is for %d pods more than there are", l.name, left)
		}
	}
	return nil
}

type count struct {
	name string
	pods int
}

func parseCounts(flag string, values []string, by string) ([]count, error) {
	var out []count
	for _, v := range values {
		i := strings.LastIndex(v, by)
		if i <= 0 {
			return nil, newMisuse("%s has %q, want NAME%sPODS", flag, v, by)
		}
		n, err := strconv.Atoi(v[i+1:])
		if err != nil || n < 0 || n > 100_000 {
			return nil, newMisuse("%s has %q, where %q is no number of pods from 0 to 100000", flag, v, v[i+1:])
		}
		out = append(out, count{v[:i], n})
	}
	return out, nil
}
