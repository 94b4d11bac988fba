// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// counts are those of a small workload.
type counts struct{ wanted, pods, available, updated, done, kept int32 }

// enumerateCounts calls a function with all counts of workloads of two pods at most, one of which may be too many.
func enumerateCounts(visit func(counts)) {
	var c counts
	for c.wanted = 0; c.wanted <= 2; c.wanted++ {
		for c.pods = 0; c.pods <= 3; c.pods++ {
			for c.available = 0; c.available <= c.pods; c.available++ {
				for c.updated = 0; c.updated <= c.pods; c.updated++ {
					for c.done = max(c.updated+c.available-c.pods, 0); c.done <= min(c.updated, c.available); c.done++ {
						for c.kept = 0; c.kept <= c.wanted; c.kept++ {
							visit(c)
						}
					}
				}
			}
		}
	}
}

// rolloutKinds make an object of a kind with counts. The status of a DaemonSet does not tell how many pods are updated and available.
var rolloutKinds = map[string]func(counts) client.Object{
	"CloneSet": func(c counts) client.Object {
		return with(newCloneSet, withCloneSetCounts(c.pods, c.available, c.updated, c.done, c.wanted-c.kept), withPartition(intstr.FromInt32(c.kept)),
			func(o *kruise.CloneSet) { o.Spec.Replicas = ptr.To(c.wanted) })
	},
	"StatefulSet": func(c counts) client.Object {
		return with(newStatefulSet, withStatefulSetCounts(c.pods, c.available, c.updated, c.done), withStatefulSetPartition(c.kept),
			func(o *kruise.StatefulSet) { o.Spec.Replicas = ptr.To(c.wanted) })
	},
	"DaemonSet": func(c counts) client.Object {
		return with(newDaemonSet, withDaemonSetPartition(intstr.FromInt32(c.kept)), func(o *kruise.DaemonSet) { o.Status.DesiredNumberScheduled = c.wanted },
			withDaemonSetCounts(c.pods, c.available, c.updated))
	},
}

// A rollout that regatta rollout status calls complete is Healthy, or Suspended where the partition keeps pods, unless a pod is
// not available. One that it waits for is Progressing.
func TestHealthAgreesWithTheCommandLine(t *testing.T) {
	scheme, scripts, m := newScheme(t), readScripts(t), newMachine(t)
	for name, newObject := range rolloutKinds {
		complete, waiting := 0, 0
		enumerateCounts(func(c counts) {
			object := newObject(c)
			view, fields := viewOf(t, object), serveObject(t, scheme, object, "v1beta1")
			got, err := judgeObject(m, scripts[groupKind(fields)].Health, fields)
			if err != nil {
				t.Errorf("%s of %+v: %v", name, c, err)
				return
			}
			want := "Progressing"
			if view.IsComplete() {
				complete++
				want = wantComplete(view)
			} else {
				waiting++
			}
			if got.Status != want {
				t.Errorf("%s of %+v is %v, want %s", name, c, got, want)
			}
			if got.Status == "Progressing" && !strings.Contains(got.Message, "pods are updated, ") {
				t.Errorf("%s of %+v has no progress in its message: %s", name, c, got.Message)
			}
		})
		if complete == 0 || waiting == 0 {
			t.Errorf("of %s %d rollouts were complete and %d not", name, complete, waiting)
		}
	}
}

func wantComplete(view kinds.View) string {
	switch {
	case view.Available < view.Pods:
		return "Progressing"
	case view.Updated < view.Wanted:
		return "Suspended"
	}
	return "Healthy"
}
