// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

const (
	// maxLabels and maxLabelBytes bound the labels of a pod that the page can group by.
	maxLabels     = 16
	maxLabelBytes = 128
	// sameWave is the longest time between the update of a pod and that of the next one in its wave.
	sameWave = 5 * time.Second
)

// podRow is a pod of a workload.
type podRow struct {
	Type      string `json:"type"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	Zone      string `json:"zone,omitempty"`
	Revision  string `json:"revision,omitempty"`
	// State is a verdict of package explain where the managers explain the pod. Else it is Deleting, NotReady, UpToDate or
	// Outdated for a pod that is ready, or Ready where the newest revision is not known.
	State string `json:"state"`
	// Problem is why a container waits, such as ImagePullBackOff.
	Problem string `json:"problem,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Until   string `json:"until,omitempty"`
	Ready   bool   `json:"ready"`
	// Updated is true if the pod has the newest revision.
	Updated bool `json:"updated"`
	// Position is the place of the pod in the order of updates.
	Position int `json:"position"`
	// UpdatedAt and ReadyAt are when the pod got its revision and when it became ready, in milliseconds since 1970; 0 if it did not.
	UpdatedAt int64             `json:"updatedAt,omitempty"`
	ReadyAt   int64             `json:"readyAt,omitempty"`
	Wave      int               `json:"wave,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// podsOfRollout describes the pods of a workload.
type podsOfRollout struct {
	head    workloadRow
	zones   map[string]string // by node
	owners  map[string]bool   // UIDs of what may own the pods
	answers map[types.NamespacedName]*explain.Answer
	order   map[types.NamespacedName]int
}

func newPodsOfRollout(head workloadRow, reply *explain.Reply) *podsOfRollout {
	all := &podsOfRollout{
		head: head, zones: map[string]string{}, owners: map[string]bool{},
		answers: map[types.NamespacedName]*explain.Answer{}, order: map[types.NamespacedName]int{},
	}
	if reply == nil {
		return all
	}
	for i := range reply.Pods {
		a := &reply.Pods[i]
		key := types.NamespacedName{Namespace: a.Subject.Namespace, Name: a.Subject.Name}
		all.answers[key], all.order[key] = a, i+1
	}
	return all
}

// collectRows returns a row for each pod that belongs to the workload, the first that is updated first.
func (all *podsOfRollout) collectRows(pods []*corev1.Pod) []*podRow {
	var rows []*podRow
	for _, pod := range pods {
		if all.belongsToWorkload(pod) {
			rows = append(rows, all.newRow(pod))
		}
	}
	numberWaves(rows)
	return rows
}

// belongsToWorkload is false for a pod that the selector selects and that another workload owns. SidecarSets own no pods: a
// pod belongs to one that has injected its containers, or about which the managers explain it. The subsets of a UnitedDeployment own
// its pods, and their names begin with its name.
func (all *podsOfRollout) belongsToWorkload(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case all.head.Kind == "SidecarSet":
		names := strings.Split(pod.Annotations[kruise.SidecarSetInjectedListKey], ",")
		_, explained := all.answers[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
		return explained || slices.Contains(names, all.head.Name)
	case owner == nil:
		return false
	case all.head.Kind == "UnitedDeployment":
		return strings.HasPrefix(owner.Name, all.head.Name+"-")
	}
	return all.owners[string(owner.UID)]
}

func (all *podsOfRollout) newRow(pod *corev1.Pod) *podRow {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	r := &podRow{
		Type: "pod", Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Zone: all.zones[pod.Spec.NodeName],
		Revision: all.revisionOf(pod), Ready: availability.HasReadyCondition(pod), Position: all.order[key],
		Problem: containerProblem(pod), Labels: boundedLabels(pod.Labels),
	}
	newest := all.head.Revision
	r.Updated = newest != "" && (r.Revision == newest || r.Revision != "" && strings.HasSuffix(newest, "-"+r.Revision))
	a := all.answers[key]
	if a != nil {
		r.Reason, r.Message, r.Rule, r.Until = a.Reason, a.Message, a.Rule, a.Until
		if a.From != "" {
			r.Revision, r.Updated = a.From, a.From == a.To
		}
	}
	switch {
	case pod.DeletionTimestamp != nil:
		r.State = string(explain.Deleting)
	case a != nil:
		r.State = string(a.Verdict)
	case !r.Ready:
		r.State = stateNotReady
	case newest == "":
		r.State = stateReady
	case r.Updated:
		r.State = string(explain.UpToDate)
	default:
		r.State = stateOutdated
	}
	r.UpdatedAt, r.ReadyAt = all.updateTimes(pod)
	return r
}

// States of pods that the managers do not explain.
const (
	stateNotReady = "NotReady"
	stateReady    = "Ready"
	stateOutdated = "Outdated"
)

// revisionOf returns the revision of a pod as far as it concerns the workload.
func (all *podsOfRollout) revisionOf(pod *corev1.Pod) string {
	switch all.head.Kind {
	case "SidecarSet":
		return "" // the managers say it
	case "UnitedDeployment":
		return pod.Labels[kruise.ControllerRevisionHashKey]
	}
	return cmp.Or(pod.Labels[appsv1.ControllerRevisionHashLabelKey], pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
}

// updateTimes returns when a pod got its revision of the workload, and when it became ready, in milliseconds since 1970; 0 if it is not
// ready. A pod got its revision by its creation, or later by an update in place.
func (all *podsOfRollout) updateTimes(pod *corev1.Pod) (updated, ready int64) {
	at := pod.CreationTimestamp.Time
	if all.head.Kind == "SidecarSet" {
		if entries, err := podmeta.Read(pod, kruise.SidecarSetHashKey); err == nil && entries[all.head.Name].UpdateTimestamp.After(at) {
			at = entries[all.head.Name].UpdateTimestamp.Time
		}
	} else if state, err := inplace.DecodeState(pod); err == nil && state != nil && state.UpdateTimestamp.After(at) {
		at = state.UpdateTimestamp.Time
	}
	if c := inplace.FindCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		ready = c.LastTransitionTime.UnixMilli()
	}
	return at.UnixMilli(), ready
}

// containerProblem returns why a container of a pod does not run.
func containerProblem(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, w.Reason) {
			return w.Reason
		}
	}
	return ""
}

func trimContainers(all []corev1.ContainerStatus) (out []corev1.ContainerStatus) {
	for _, s := range all {
		if s.State.Waiting != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: s.State.Waiting.Reason}}})
		}
	}
	return out
}

// keepAnnotations keeps the annotations that the page reads.
func keepAnnotations(all map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{kruise.InPlaceUpdateStateKey, kruise.InPlaceUpdateStateLegacyKey, kruise.SidecarSetInjectedListKey, kruise.SidecarSetHashKey} {
		if value, ok := all[key]; ok {
			out[key] = value
		}
	}
	return out
}

// ownLabels are labels that each pod has another value of, and those of revisions.
func ownLabels() []string {
	return []string{
		appsv1.ControllerRevisionHashLabelKey, appsv1.DefaultDeploymentUniqueLabelKey, appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel,
		kruise.CloneSetInstanceIDKey,
	}
}

// boundedLabels returns the labels that pods can be grouped by: those that other pods may have too.
func boundedLabels(all map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		own := slices.Contains(ownLabels(), key)
		if !own && len(out) < maxLabels && len(key)+len(all[key]) <= maxLabelBytes {
			out[key] = all[key]
		}
	}
	return out
}

// numberWaves gives pods that were updated at about the same time the same number, from 1, and sorts the rows: pods in the order of their updates,
// then those that are not updated in the order in which they will be.
func numberWaves(rows []*podRow) {
	slices.SortFunc(rows, compareByUpdate)
	wave, last := 0, int64(0)
	for _, r := range rows {
		if !r.Updated {
			continue
		}
		if wave == 0 || r.UpdatedAt-last > sameWave.Milliseconds() {
			wave++
		}
		r.Wave, last = wave, r.UpdatedAt
	}
}

func compareByUpdate(a, b *podRow) int {
	switch {
	case a.Updated != b.Updated && a.Updated:
		return -1
	case a.Updated != b.Updated:
		return 1
	case a.Updated && a.UpdatedAt != b.UpdatedAt:
		return int(a.UpdatedAt - b.UpdatedAt)
	case !a.Updated && a.Position != b.Position:
		return a.Position - b.Position
	}
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
}
