// SPDX-License-Identifier: Apache-2.0

// Package workload has the workloads that are measured: what they look like,
// how they are changed, and when their status says that they are done. They are
// plain objects, so that any implementation of their kind can be measured.
package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/test/perf/watch"
)

// GroupLabel is on every pod, with the name of its workload.
const GroupLabel = "perf.regatta.sh/workload"

// MaxUnavailable is that of every workload.
const MaxUnavailable = "20%"

// Names of phases.
const (
	Create   = "create"
	Idle     = "idle"
	InPlace  = "inPlace"
	Recreate = "recreate"
	Upgrade  = "upgrade"
	Delete   = "delete"
)

// A Kind is a kind of workload.
type Kind struct {
	// Name is what reports call it.
	Name string
	// Main is the object that has pods.
	Main Part
	// Before are objects that exist before Main is created, and are deleted with it. If
	// there are any, they are measured, by their status.
	Before []Part
	// First is the image that the pods run that are created.
	First string
	// Updates are the phases between creation and deletion.
	Updates []Update
	// Controllers are those of kube-controller-manager that make the workload, by
	// the names of their accounts; without any it is the program that is measured.
	Controllers []string
	// Reconciler is the controller of that program, as its metrics call it.
	Reconciler string
	// PerNode says that there is a pod on each node.
	PerNode bool
	// Ends says that pods complete; otherwise they are to become available.
	Ends bool
	// Idles says that it is measured without a change, too, once it is created.
	Idles bool
	// Yardstick is the name of the kind that it is compared with, if any.
	Yardstick string
}

// A Part is an object that a workload consists of.
type Part struct {
	Resource schema.GroupVersionResource
	Cluster  bool // it is in no namespace

	kind string
	// ungenerated says that the status does not tell the generation it is of.
	ungenerated bool
	spec        func(Shape) map[string]any
	reached     func(status, int) bool
}

// An Update changes a workload: Image is what its pods run then.
type Update struct {
	Phase string
	Image string
	Of    Part   // that is patched, Main if empty
	Patch []byte // JSON patch
}

// A Shape is what a workload is to be like.
type Shape struct {
	Name         string
	Namespace    string
	Pods         int
	NodeSelector map[string]string
	Zones        []string // of the nodes
	Subsets      int      // of a UnitedDeployment
}

// Native says whether kube-controller-manager makes the workload.
func (k Kind) Native() bool { return len(k.Controllers) > 0 }

// ID is the name of an object of this kind that is the only one.
func (k Kind) ID() string { return strings.ReplaceAll(strings.ToLower(k.Name), " ", "-") }

// StatusResource is the resource whose writes are those of the status.
func (k Kind) StatusResource() string { return k.Parts()[0].Resource.Resource + "/status" }

// Parts are all objects of a workload in the order in which they are created.
func (k Kind) Parts() []Part { return append(slices.Clone(k.Before), k.Main) }

// Updated is the part that an update changes.
func (k Kind) Updated(u Update) Part {
	if u.Of.spec == nil {
		return k.Main
	}
	return u.Of
}

// Reached says whether the objects of a workload say of themselves that all pods
// are updated and available.
func (k Kind) Reached(objects watch.Objects, pods int) bool {
	for _, part := range k.Parts() {
		if !part.done(objects[part.Resource], pods) {
			return false
		}
	}
	return true
}

// images are real ones, so that nodes that are not simulated can pull them.
func image(n int) string { return fmt.Sprintf("registry.k8s.io/pause:3.%d", n) }

// firstImage is that of the container app.
func firstImage() string { return image(8) }

// Object is the part of a workload of this shape.
func (p Part) Object(s Shape) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.Resource.GroupVersion().String(),
		"kind":       p.kind,
		"metadata":   map[string]any{"name": s.Name},
		"spec":       p.spec(s),
	}}
	if !p.Cluster {
		o.SetNamespace(s.Namespace)
	}
	return o
}

func (p Part) done(o *unstructured.Unstructured, pods int) bool {
	if o == nil {
		return false
	}
	s, ok := o.Object["status"].(map[string]any)
	if !ok || !p.ungenerated && status(s).number("observedGeneration") != o.GetGeneration() {
		return false
	}
	return p.reached(s, pods)
}

func selector(s Shape) map[string]any {
	return map[string]any{"matchLabels": map[string]any{GroupLabel: s.Name}}
}

func template(s Shape) map[string]any {
	spec := map[string]any{
		"containers": []any{map[string]any{"name": "app", "image": firstImage()}},
	}
	if len(s.NodeSelector) > 0 {
		nodes := map[string]any{}
		for k, v := range s.NodeSelector {
			nodes[k] = v
		}
		spec["nodeSelector"] = nodes
	}
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{GroupLabel: s.Name}}, "spec": spec}
}

type status map[string]any

func (s status) number(field string) int64 {
	n, _ := s[field].(int64) // what is not there counts as 0, as in the API
	return n
}

func (s status) all(pods int, fields ...string) bool {
	for _, f := range fields {
		if s.number(f) != int64(pods) {
			return false
		}
	}
	return true
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// update changes the image of the template of a workload.
func update(phase, image string, more ...operation) Update {
	return updateAt("/spec/template/spec/containers/0/image", phase, image, more...)
}

// updateAt changes the image that is at path.
func updateAt(path, phase, image string, more ...operation) Update {
	ops := append(more, operation{"replace", path, image})
	raw, err := json.Marshal(ops)
	if err != nil {
		panic(err) // strings always encode
	}
	return Update{Phase: phase, Image: image, Patch: raw}
}
