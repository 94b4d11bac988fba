// SPDX-License-Identifier: Apache-2.0

// Package spread has what the webhook of pods and the controller of WorkloadSpreads share: it finds
// the spread of a pod and the replicas of its workload, keeps the records in the status, and
// makes pods part of subsets (WS-01 to WS-04, WS-09, WS-10).
package spread

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get

// Custom is an entry of the white list: a kind of workload.
type Custom struct {
	Group, Version, Kind string
	// SubResources are the kinds between this kind and its pods.
	SubResources []schema.GroupVersionKind
	ReplicasPath string
}

// listed is the white list in the ConfigMap.
type listed struct {
	Workloads []Custom
}

// fresh is how long the white list is remembered.
const fresh = 10 * time.Second

// Targets read the workloads whose pods are spread.
type Targets struct {
	cached, live client.Reader
	finder       *scale.Finder
	config       rules.Configuration
	now          func() time.Time

	mu   sync.Mutex
	list listed
	at   time.Time
}

// NewTargets makes Targets. namespace is the namespace of the manager.
func NewTargets(cached, live client.Reader, finder *scale.Finder, namespace string, now func() time.Time) *Targets {
	return &Targets{cached: cached, live: live, finder: finder, config: rules.Configuration{Reader: live, Namespace: namespace}, now: now}
}

// SupportedKinds are the kinds that can be spread without an entry on the white list.
func SupportedKinds() []schema.GroupKind {
	out := []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "StatefulSet"},
		{Group: "batch", Kind: "Job"},
	}
	for _, w := range kinds.PodOwners() {
		if w.Counted {
			out = append(out, w.GroupKind())
		}
	}
	return out
}

// readWhiteList returns the white list, at most fresh old. If it cannot be read, the last one is used.
func (t *Targets) readWhiteList(ctx context.Context) ([]Custom, error) {
	t.mu.Lock()
	list, at := t.list, t.at
	t.mu.Unlock()
	if !at.IsZero() && t.now().Sub(at) < fresh {
		return list.Workloads, nil
	}
	read := listed{}
	if _, err := t.config.Read(ctx, kruise.WorkloadSpreadWhiteListKey, &read); err != nil {
		if at.IsZero() {
			return nil, err
		}
		return list.Workloads, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.at = read, t.now()
	return read.Workloads, nil
}

// findCustom returns the entry of a kind on the white list.
func (t *Targets) findCustom(ctx context.Context, kind schema.GroupKind) (*Custom, error) {
	all, err := t.readWhiteList(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if (schema.GroupKind{Group: all[i].Group, Kind: all[i].Kind}) == kind {
			return &all[i], nil
		}
	}
	return nil, nil
}

// followsKind reports whether objects of a kind can be between a workload on the white list and its pods, or are such workloads.
func (t *Targets) followsKind(ctx context.Context, kind schema.GroupKind) (bool, error) {
	all, err := t.readWhiteList(ctx)
	if err != nil {
		return false, err
	}
	for i := range all {
		if (schema.GroupKind{Group: all[i].Group, Kind: all[i].Kind}) == kind {
			return true, nil
		}
		for _, sub := range all[i].SubResources {
			if sub.GroupKind() == kind {
				return true, nil
			}
		}
	}
	return false, nil
}

// Target is the workload of a spread, as it was read.
type Target struct {
	UID      types.UID
	Replicas int
}

// ReadTarget reads the workload of a spread; nil if it does not exist.
func (t *Targets) ReadTarget(ctx context.Context, w *kruise.WorkloadSpread) (*Target, error) {
	ref := w.Spec.TargetReference
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	key := types.NamespacedName{Namespace: w.Namespace, Name: ref.Name}
	custom, err := t.findCustom(ctx, kind.GroupKind())
	if err != nil {
		return nil, err
	}
	filter := w.Spec.TargetFilter
	switch {
	case filter != nil && len(filter.ReplicasPathList) > 0:
		return t.byPaths(ctx, kind, key, filter.ReplicasPathList)
	case custom != nil:
		path := custom.ReplicasPath
		if path == "" {
			path = "spec.replicas"
		}
		return t.byPaths(ctx, kind, key, []string{path})
	case kind.GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}:
		job := &batchv1.Job{}
		if err := t.cached.Get(ctx, key, job); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return &Target{UID: job.UID, Replicas: int(ptr.Deref(job.Spec.Parallelism, 1))}, nil
	}
	found, err := t.finder.FindWorkload(ctx, w.Namespace, scale.Reference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
	if err != nil || found == nil {
		return nil, err
	}
	return &Target{UID: found.UID, Replicas: int(found.Replicas)}, nil
}

// readLive reads the workload of a spread past the cache; nil if it does not exist.
func (t *Targets) readLive(ctx context.Context, w *kruise.WorkloadSpread) (*Target, error) {
	ref := w.Spec.TargetReference
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	known, ours := kinds.FindByGroupKind(kind.GroupKind())
	if ours {
		kind = known.GroupVersionKind // a spread may name any version that is served
	}
	if !slices.Contains(SupportedKinds(), kind.GroupKind()) || w.Spec.TargetFilter != nil && len(w.Spec.TargetFilter.ReplicasPathList) > 0 {
		return t.ReadTarget(ctx, w) // ReadTarget reads these past the cache, too
	}
	path := []string{"spec", "replicas"}
	if kind.GroupKind() == (schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}) {
		path[1] = "parallelism"
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	if err := t.live.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: ref.Name}, o); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading %s %s past the cache: %w", ref.Kind, ref.Name, err)
	}
	n, found, err := unstructured.NestedInt64(o.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("reading the replicas of %s %s: %w", ref.Kind, ref.Name, err)
	}
	if !found {
		n = 1
	}
	return &Target{UID: o.GetUID(), Replicas: int(n)}, nil
}

// byPaths reads a workload whose number of replicas is the sum of some fields.
func (t *Targets) byPaths(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName, paths []string) (*Target, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	err := t.live.Get(ctx, key, o)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key.Name, err)
	}
	out := &Target{UID: o.GetUID()}
	for _, path := range paths {
		n, err := readNumber(o.Object, strings.Split(path, "."))
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s %s: %w", path, kind.Kind, key.Name, err)
		}
		out.Replicas += n
	}
	return out, nil
}

// readNumber reads a number from a field of an object. A number in the path is the index of a list.
func readNumber(v any, path []string) (int, error) {
	for i, step := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return 0, fmt.Errorf("there is no %s", strings.Join(path[:i+1], "."))
			}
			v = next
		case []any:
			place, err := strconv.Atoi(step)
			if err != nil || place < 0 || place >= len(at) {
				return 0, fmt.Errorf("%s is no place in a list of %d", strings.Join(path[:i+1], "."), len(at))
			}
			v = at[place]
		default:
			return 0, fmt.Errorf("%s has no fields", strings.Join(path[:i], "."))
		}
	}
	switch n := v.(type) {
	case int64:
		return int(n), nil
	case float64:
		return int(n), nil
	}
	return 0, fmt.Errorf("it is %v, want a number", v)
}
