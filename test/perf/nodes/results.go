// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
)

// conditionPrefix begins the conditions of probes. Behind it is the name of the probe in its marker.
const conditionPrefix = "perf.regatta.sh/"

// probeOf is a probe of a pod, by the UID of the pod.
type probeOf struct{ uid, probe string }

// results compares what nodes report of probes with what the conditions of pods say, as two watches tell.
type results struct {
	mu         sync.Mutex
	known      map[string]bool // nodes
	reported   map[probeOf]corev1.ConditionStatus
	conditions map[probeOf]corev1.ConditionStatus
	since      map[probeOf]time.Time // a report that the condition does not say yet
	changed    int
	took       []time.Duration
}

func newResults() *results {
	return &results{
		known: map[string]bool{}, reported: map[probeOf]corev1.ConditionStatus{}, conditions: map[probeOf]corev1.ConditionStatus{},
		since: map[probeOf]time.Time{},
	}
}

func (r *results) seeNode(_, now *v1alpha1.NodePodProbe) {
	if now == nil {
		return
	}
	at := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[now.Name] = true
	for i := range now.Status.PodProbeStatuses {
		pod := &now.Status.PodProbeStatuses[i]
		for j := range pod.ProbeStates {
			_, probe, _ := strings.Cut(pod.ProbeStates[j].Name, "#")
			key, is := probeOf{pod.UID, probe}, corev1.ConditionFalse
			if pod.ProbeStates[j].State == v1alpha1.ProbeSucceeded {
				is = corev1.ConditionTrue
			}
			if r.reported[key] == is {
				continue
			}
			r.reported[key] = is
			r.changed++
			if r.conditions[key] == is { // the watch of pods was faster
				r.took = append(r.took, 0)
				delete(r.since, key)
				continue
			}
			r.since[key] = at
		}
	}
}

func (r *results) seePod(_, now *corev1.Pod) {
	if now == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range now.Status.Conditions {
		c := &now.Status.Conditions[i]
		probe, ok := strings.CutPrefix(string(c.Type), conditionPrefix)
		if !ok {
			continue
		}
		key := probeOf{string(now.UID), probe}
		r.conditions[key] = c.Status
		if at, waits := r.since[key]; waits && r.reported[key] == c.Status {
			r.took = append(r.took, time.Since(at))
			delete(r.since, key)
		}
	}
}

func (r *results) nodes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known)
}

// settled says whether so many probes have a condition, and all conditions are as reported.
func (r *results) settled(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conditions) == n && len(r.since) == 0
}

// missing tells how far conditions are behind.
func (r *results) missing() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d probes are reported, %d have a condition, %d of these say something else", len(r.reported), len(r.conditions), len(r.since))
}

// reset begins to count anew.
func (r *results) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed, r.took = 0, nil
}

// changes are how many results have changed, and how long it took until conditions said so.
func (r *results) changes() (int, []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, r.took
}
