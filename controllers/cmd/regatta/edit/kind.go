// SPDX-License-Identifier: Apache-2.0

// Package edit changes a few fields of objects, as the commands of kubectl do for the kinds of
// Kubernetes: it finds the objects, writes the differences and prints what was done.
package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Path is the path of a field in an object, nil if the kind has no such field.
type Path []string

// splitPath splits a path such as spec.template.
func splitPath(dotted string) Path { return strings.Split(dotted, ".") }

// String is the path as users write it, such as spec.template.
func (p Path) String() string { return strings.Join(p, ".") }

// Kind describes a kind whose objects the commands change.
type Kind struct {
	schema.GroupVersionResource
	Kind string
	// Names are the words that the command line accepts. Messages use the first one.
	Names []string
	// ClusterScoped is true for kinds whose objects are in no namespace.
	ClusterScoped bool
	// PodSpecs are the paths at which an object may have its pod spec. The first one that the object has is
	// meant. The containers of a SidecarSet are fields of its own spec.
	PodSpecs []Path
	// Paused is the field that stops a rollout.
	Paused Path
	// Partition is the field for how many pods stay at the old revision. PartitionPercent is true
	// if it may be a percentage.
	Partition        Path
	PartitionPercent bool
	// UpdatePolicy is the field that says whether pods are updated in place.
	UpdatePolicy Path
	// Scalable is true for kinds with the subresource scale.
	Scalable bool
	// PodsToDelete is the field with the names of pods that go when the kind is scaled down.
	PodsToDelete Path
	// ReserveOrdinals is the field with ordinals that no pod may have.
	ReserveOrdinals Path
}

// kinds is the table. It does not change.
var kinds = [...]Kind{{
	GroupVersionResource: kruise.GroupVersion.WithResource("clonesets"), Kind: "CloneSet", Names: []string{"clone", "cloneset"},
	PodSpecs: []Path{splitPath("spec.template.spec")},
	Paused:   splitPath("spec.updateStrategy.rollingUpdate.paused"), Partition: splitPath("spec.updateStrategy.rollingUpdate.partition"), PartitionPercent: true,
	UpdatePolicy: splitPath("spec.updateStrategy.rollingUpdate.podUpdatePolicy"),
	Scalable:     true, PodsToDelete: splitPath("spec.scaleStrategy.podsToDelete"),
}, {
	GroupVersionResource: kruise.GroupVersion.WithResource("statefulsets"), Kind: "StatefulSet", Names: []string{"asts"},
	PodSpecs: []Path{splitPath("spec.template.spec")},
	Paused:   splitPath("spec.updateStrategy.rollingUpdate.paused"), Partition: splitPath("spec.updateStrategy.rollingUpdate.partition"),
	UpdatePolicy: splitPath("spec.updateStrategy.rollingUpdate.podUpdatePolicy"),
	Scalable:     true, ReserveOrdinals: splitPath("spec.reserveOrdinals"),
}, {
	GroupVersionResource: kruise.GroupVersion.WithResource("daemonsets"), Kind: "DaemonSet", Names: []string{"ads", "daemon"},
	PodSpecs: []Path{splitPath("spec.template.spec")},
	Paused:   splitPath("spec.updateStrategy.rollingUpdate.paused"), Partition: splitPath("spec.updateStrategy.rollingUpdate.partition"), PartitionPercent: true,
	UpdatePolicy: splitPath("spec.updateStrategy.rollingUpdate.rollingUpdateType"),
}, {
	GroupVersionResource: kruise.GroupVersion.WithResource("sidecarsets"), Kind: "SidecarSet", Names: []string{"sidecarset"},
	ClusterScoped: true,
	PodSpecs:      []Path{splitPath("spec")},
	Paused:        splitPath("spec.updateStrategy.paused"), Partition: splitPath("spec.updateStrategy.partition"), PartitionPercent: true,
}, {
	GroupVersionResource: kruise.GroupVersion.WithResource("uniteddeployments"), Kind: "UnitedDeployment", Names: []string{"ud", "uniteddeployment"},
	PodSpecs: []Path{
		splitPath("spec.template.cloneSetTemplate.spec.template.spec"), splitPath("spec.template.advancedStatefulSetTemplate.spec.template.spec"),
		splitPath("spec.template.statefulSetTemplate.spec.template.spec"), splitPath("spec.template.deploymentTemplate.spec.template.spec"),
	},
	Scalable: true,
}, {
	GroupVersionResource: kruise.GroupVersion.WithResource("broadcastjobs"), Kind: "BroadcastJob", Names: []string{"bcj", "broadcastjob"},
	PodSpecs: []Path{splitPath("spec.template.spec")}, Paused: splitPath("spec.paused"),
}, {
	GroupVersionResource: kruise.GroupVersion.WithResource("advancedcronjobs"), Kind: "AdvancedCronJob", Names: []string{"acj", "advancedcronjob"},
	PodSpecs: []Path{splitPath("spec.template.jobTemplate.spec.template.spec"), splitPath("spec.template.broadcastJobTemplate.spec.template.spec")},
	Paused:   splitPath("spec.paused"),
}, {
	GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Names: []string{"deployment", "deploy"},
	PodSpecs: []Path{splitPath("spec.template.spec")}, Paused: splitPath("spec.paused"), Scalable: true,
}, {
	GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), Kind: "StatefulSet", Names: []string{"statefulset", "sts"},
	PodSpecs: []Path{splitPath("spec.template.spec")}, Partition: splitPath("spec.updateStrategy.rollingUpdate.partition"), Scalable: true,
}, {
	GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("daemonsets"), Kind: "DaemonSet", Names: []string{"daemonset", "ds"},
	PodSpecs: []Path{splitPath("spec.template.spec")},
}}

// SelectKinds returns the kinds for which a function is true, in the order of messages.
func SelectKinds(is func(Kind) bool) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds[:]), func(k Kind) bool { return !is(k) })
}

// GroupKind is the kind with its group.
func (k Kind) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// IsNative is true for kinds of Kubernetes itself.
func (k Kind) IsNative() bool { return k.Group == appsv1.GroupName }

// IsNamed is true if a word of the command line names the kind: one of its names, its resource or
// its kind, with or without the version and the group. Without a group, a word that both a kind of
// Kubernetes and another one have names the kind of Kubernetes, as for kubectl.
func (k Kind) IsNamed(word string) bool {
	word = strings.ToLower(word)
	if slices.Contains(k.Names, word) {
		return true
	}
	name, group, qualified := strings.Cut(word, ".")
	if version, rest, ok := strings.Cut(group, "."); ok && slices.Contains([]string{"v1", "v1alpha1", "v1beta1"}, version) {
		group = rest
	}
	named := name == k.Resource || name == strings.ToLower(k.Kind) || slices.Contains(k.Names, name)
	if qualified {
		return named && group == k.Group
	}
	return named && (k.IsNative() || !slices.ContainsFunc(kinds[:], func(other Kind) bool { return other.IsNative() && other.Resource == k.Resource }))
}

// PodSpecPath is the path of the pod spec in an object.
func (k Kind) PodSpecPath(object *unstructured.Unstructured) (Path, error) {
	for _, p := range k.PodSpecs {
		if _, ok, err := unstructured.NestedMap(object.Object, p...); err == nil && ok {
			return p, nil
		}
	}
	var want []string
	for _, p := range k.PodSpecs {
		want = append(want, p.String())
	}
	return nil, fmt.Errorf("%s %s has no pod spec at %s", k.Kind, object.GetName(), strings.Join(want, " or "))
}

// PodTemplatePath is the path of the pod template in an object. A SidecarSet has none.
func (k Kind) PodTemplatePath(object *unstructured.Unstructured) (Path, error) {
	p, err := k.PodSpecPath(object)
	if err != nil {
		return nil, err
	}
	if len(p) < 2 {
		return nil, fmt.Errorf("a %s has no pod template", k.Kind)
	}
	return p[:len(p)-1], nil
}

// JoinArguments tells how objects of some kinds are named on the command line, such as
// clone/NAME, asts/NAME or ads/NAME.
func JoinArguments(allowed []Kind, separator, last string) string {
	var forms []string
	for _, k := range allowed {
		forms = append(forms, k.Names[0]+"/NAME")
	}
	if n := len(forms); n > 1 {
		forms = append(forms[:n-2], forms[n-2]+last+forms[n-1])
	}
	return strings.Join(forms, separator)
}

// UsageArguments is how the objects of some kinds are named in the usage line of a command.
func UsageArguments(allowed []Kind) string { return "(" + JoinArguments(allowed, " | ", " | ") + ")" }

// DescribeKinds tells in a help text how objects of some kinds are named.
func DescribeKinds(allowed []Kind) string {
	const columns = 96
	return ansi.Wordwrap("KIND/NAME is "+JoinArguments(allowed, ", ", " or ")+".", columns, "")
}

// findKind is the kind that a word of the command line names, among those that are allowed.
func findKind(word string, allowed []Kind) (Kind, error) {
	want := JoinArguments(allowed, ", ", " or ")
	for _, k := range kinds {
		if !k.IsNamed(word) {
			continue
		}
		if !slices.ContainsFunc(allowed, func(a Kind) bool { return a.GroupVersionResource == k.GroupVersionResource }) {
			return Kind{}, fmt.Errorf("this command is not for objects of kind %s; want %s", DescribeKind(k), want)
		}
		return k, nil
	}
	return Kind{}, fmt.Errorf("%q is no kind that this command changes; want %s", word, want)
}

// DescribeKind names a kind to people. Two groups have a StatefulSet and a DaemonSet.
func DescribeKind(k Kind) string {
	if k.IsNative() {
		return k.Kind + " of Kubernetes"
	}
	if slices.ContainsFunc(kinds[:], func(other Kind) bool { return other.IsNative() && other.Kind == k.Kind }) {
		return "Advanced " + k.Kind
	}
	return k.Kind
}

// Describe names an object to people.
func (k Kind) Describe(name string) string { return DescribeKind(k) + " " + name }
