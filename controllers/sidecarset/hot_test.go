// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/marks"
)

// hotLogs is a SidecarSet of a hot pair and of an agent beside it.
func hotLogs() *kruise.SidecarSet {
	return logs(func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty"}
		s.Spec.Containers = append(s.Spec.Containers, kruise.SidecarContainer{Container: corev1.Container{Name: "agent", Image: "agent:1"}})
	})
}

func both(shipper, agent string) func(*kruise.SidecarSet) {
	return func(s *kruise.SidecarSet) { s.Spec.Containers[0].Image, s.Spec.Containers[1].Image = shipper, agent }
}

// Of a pair the container that started last serves: it has taken over from the other one.
func TestHotUpgradesThatAreTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		broken  []string
		first   func(*kruise.SidecarSet)
		held    string // the pair while the first change is under way
		next    func(*kruise.SidecarSet)
		late    bool   // what does not start at first does in the end
		working string // in the end, with the image
	}{
		"the new image does not start, and the old one is wanted again": {
			broken: []string{"logs:2"}, first: both("logs:2", "agent:1"), held: "logs:1 logs:2", next: both("logs:1", "agent:1"), working: "shipper-2 logs:1",
		},
		"the new image does not start, and the next one does": {
			broken: []string{"logs:2"}, first: both("logs:2", "agent:1"), held: "logs:1 logs:2", next: both("logs:3", "agent:1"), working: "shipper-2 logs:3",
		},
		"the new image has taken over beside an agent that does not start, and the old ones are wanted again": {
			broken: []string{"agent:2"}, first: both("logs:2", "agent:2"), held: "logs:1 logs:2", next: both("logs:1", "agent:1"), working: "shipper-1 logs:1",
		},
		"the new image has taken over beside an agent that does not start, and another agent is wanted": {
			broken: []string{"agent:2"}, first: both("logs:2", "agent:2"), held: "logs:1 logs:2", next: both("logs:2", "agent:3"), working: "shipper-2 logs:2",
		},
		"the new image does not start yet, and another agent is wanted": {
			broken: []string{"logs:2"}, first: both("logs:2", "agent:1"), held: "logs:1 logs:2", next: both("logs:2", "agent:3"), late: true, working: "shipper-2 logs:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := hotLogs()
			w := newWorld(t, "", append(webs(t, 1, set), set)...)
			w.broken = tc.broken
			serving, versions := "shipper-1", map[string]string{}
			kubelet := func() {
				t.Helper()
				was := w.pods()[0]
				w.run()
				p := w.pods()[0]
				for _, name := range []string{"shipper-1", "shipper-2"} {
					restarted := containerID(was, name) != containerID(p, name)
					if restarted {
						versions[name] = p.Annotations[kruise.SidecarSetVersionPrefix+name]
					}
					if containerID(was, name) == "" {
						continue
					}
					if restarted && name == serving {
						t.Errorf("%s is stopped while it serves", name)
					}
					if readyOf(p, name) && imageID(p, name) != "id-of-empty" && (restarted || !readyOf(was, name)) {
						serving = name
					}
				}
			}
			rounds := func() {
				t.Helper()
				for range 8 {
					w.round("logs")
					kubelet()
				}
				w.round("logs")
			}
			kubelet()
			w.round("logs")
			w.edit("logs", tc.first)
			rounds()
			pair := func() string {
				return containerOf(w.pods()[0], "shipper-1").Image + " " + containerOf(w.pods()[0], "shipper-2").Image
			}
			if pair() != tc.held {
				t.Fatalf("the pair is %s, want %s", pair(), tc.held)
			}
			w.edit("logs", tc.next)
			rounds()
			if tc.late {
				w.broken = nil
				rounds()
			}
			p := w.pods()[0]
			working := marks.Working(p)["shipper"]
			if got := working + " " + containerOf(p, working).Image; got != tc.working || serving != working {
				t.Errorf("%s works, want %s, and %s serves", got, tc.working, serving)
			}
			if idle := containerOf(p, otherOf("shipper", working)).Image; idle != "empty" || containerOf(p, "agent").Image != w.set("logs").Spec.Containers[1].Image {
				t.Errorf("the idle one has %s, and the agent %s", idle, containerOf(p, "agent").Image)
			}
			if s := w.set("logs").Status; s.UpdatedPods != 1 || s.ReadyPods != 1 {
				t.Errorf("the status is %+v", s)
			}
			if got := p.Annotations[kruise.SidecarSetVersionPrefix+working]; got != versions[working] {
				t.Errorf("the version of %s is %s, and it was %s when it started", working, got, versions[working])
			}
		})
	}
}

func containerID(pod *corev1.Pod, container string) string {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return pod.Status.ContainerStatuses[i].ContainerID
		}
	}
	return ""
}
