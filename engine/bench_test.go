// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/heap"
)

func BenchmarkDecide(b *testing.B) {
	for name, source := range map[string]string{"labelled": builtin, "constant": "package test\ngo := {\"go\": true, \"total\": 1, \"holds\": []}"} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, source)
			in := facts{N: 1, Names: []string{"a", "b"}}
			b.ReportAllocs()
			for b.Loop() {
				engine.Decide(context.Background(), e, point(), subject(), in)
			}
		})
	}
}

// BenchmarkManyNamespaces activates bundles of 500 namespaces, and then another one of the platform. It reports what
// the heap has in use after each, and at most during the second, which ends when all namespaces are checked.
func BenchmarkManyNamespaces(b *testing.B) {
	const many = 500
	for b.Loop() {
		before := heap.CountLiveBytes()
		e, err := engine.New(policies.Builtin)
		if err != nil {
			b.Fatal(err)
		}
		own := bundle.Set{}
		for i := range many {
			own = append(own, tenant(b, fmt.Sprintf("ns%d", i), "package extend.rollout.own\nhold contains {\"reason\": \"Own\", \"message\": \"m\"} if input.workload.labels.x == \"y\""))
		}
		start := time.Now()
		if err := e.ActivateBundles(b.Context(), own); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/activation")
		b.ReportMetric(float64(heap.CountLiveBytes()-before)/(1<<20), "MiB/activated")
		freeze := platform(b, "freeze", "package extend.rollout.freeze\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.labels.f == \"y\"")
		start = time.Now()
		if err := e.ActivateBundles(b.Context(), append(bundle.Set{freeze}, own...)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/change")
		peak := uint64(0)
		objects := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for !engine.Checked(e.ActiveSnapshot()) {
			metrics.Read(objects)
			peak = max(peak, objects[0].Value.Uint64())
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/checked")
		b.ReportMetric(float64(peak)/(1<<20)-float64(before)/(1<<20), "MiB/peak")
		b.ReportMetric(float64(heap.CountLiveBytes()-before)/(1<<20), "MiB/changed")
		e.Close()
	}
}
