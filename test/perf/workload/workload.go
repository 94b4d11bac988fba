// SPDX-License-Identifier: Apache-2.0

// Package workload has the workloads that are measured: what they look like,
// how they are changed, and when their status says that they are done. They are
// plain objects, so that any implementation of their kind can be measured.
package workload

import (
	"encoding/json"
	"fmt"
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
	InPlace  = "inPlace"
	Recreate = "recreate"
	Delete   = "delete"
)

// A Kind is a kind of workload.
type Kind struct {
	// Name is what reports call it.
	Name string
	// Main is the object that has pods.
	Main Part
	// Updates are the phases between creation and deletion.
	Updates []Update
	// Controllers are those of kube-controller-manager that make the workload, by
	// the names of their accounts; without any it is the program that is measured.
	Controllers []string
	// Reconciler is the controller of that program, as its metrics call it.
	Reconciler string
	// Yardstick is the name of the kind that it is compared with, if any.
	Yardstick string
}

// A Part is an object that a workload consists of.
type Part struct {
	Resource schema.GroupVersionResource

	kind    string
	spec    func(Shape) map[string]any
	reached func(status, int) bool
}

// An Update changes the template of a workload: Image is what its pods run then.
type Update struct {
	Phase string
	Image string
	Patch []byte // JSON patch
}

// A Shape is what a workload is to be like.
type Shape struct {
	Name         string
	Namespace    string
	Pods         int
	NodeSelector map[string]string
}

// Native says whether kube-controller-manager makes the workload.
func (k Kind) Native() bool { return len(k.Controllers) > 0 }

// ID is the name of an object of this kind that is the only one.
func (k Kind) ID() string { return strings.ReplaceAll(strings.ToLower(k.Name), " ", "-") }

// StatusResource is the resource whose writes are those of the status.
func (k Kind) StatusResource() string { return k.Main.Resource.Resource + "/status" }

// Reached says whether the objects of a workload say of themselves that all pods
// are updated and available.
func (k Kind) Reached(objects watch.Objects, pods int) bool {
	return k.Main.done(objects[k.Main.Resource], pods)
}

// images are real ones, so that nodes that are not simulated can pull them.
func image(n int) string { return fmt.Sprintf("registry.k8s.io/pause:3.%d", n) }

// FirstImage is what the pods run that are created first.
func FirstImage() string { return image(8) }

// Object is the part of a workload of this shape.
func (p Part) Object(s Shape) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.Resource.GroupVersion().String(),
		"kind":       p.kind,
		"metadata":   map[string]any{"name": s.Name, "namespace": s.Namespace},
		"spec":       p.spec(s),
	}}
}

func (p Part) done(o *unstructured.Unstructured, pods int) bool {
	if o == nil {
		return false
	}
	s, ok := o.Object["status"].(map[string]any)
	return ok && status(s).number("observedGeneration") == o.GetGeneration() && p.reached(s, pods)
}

func selector(s Shape) map[string]any {
	return map[string]any{"matchLabels": map[string]any{GroupLabel: s.Name}}
}

func template(s Shape) map[string]any {
	spec := map[string]any{
		"containers": []any{map[string]any{"name": "app", "image": FirstImage()}},
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

func update(phase, image string, more ...operation) Update {
	ops := append(more, operation{"replace", "/spec/template/spec/containers/0/image", image})
	raw, err := json.Marshal(ops)
	if err != nil {
		panic(err) // strings always encode
	}
	return Update{Phase: phase, Image: image, Patch: raw}
}
