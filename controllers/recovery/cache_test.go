// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFunctionsOfInformersMayPanic(t *testing.T) {
	seen := 0
	h := eventHandler{toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if o.(*corev1.Pod).Name == "hostile" {
				panic("add")
			}
			seen++
		},
		UpdateFunc: func(any, any) { panic("update") },
		DeleteFunc: func(any) { panic("delete") },
	}}
	hostile, healthy := &corev1.Pod{}, &corev1.Pod{}
	hostile.Name = "hostile"
	h.OnAdd(hostile, true)
	h.OnUpdate(hostile, hostile)
	h.OnDelete(hostile)
	h.OnAdd(healthy, true)
	if seen != 1 {
		t.Errorf("the healthy object was seen %d times, want once", seen)
	}
	if got := wrapIndexer(func(client.Object) []string { panic("index") })(hostile); got != nil {
		t.Errorf("an index that panics has %v, want nothing", got)
	}
	if got, err := wrapTransform(func(any) (any, error) { panic("transform") })(hostile); got != any(hostile) || err != nil {
		t.Errorf("a transform that panics makes %v, %v, want the object as it was", got, err)
	}
}
