// SPDX-License-Identifier: Apache-2.0

// Package history reads and writes the revisions of SidecarSets (SS-16). They are in the namespace of the manager, and have
// the parts of the spec that end up in pods.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// recordedFields are the fields of a spec that a revision has. A field that is not set is null, as in OpenKruise's revisions.
func recordedFields() []string {
	return []string{"containers", "imagePullSecrets", "initContainers", "patchPodMetadata", "volumes"}
}

// EncodeSpec returns the data of a revision.
func EncodeSpec(spec *kruise.SidecarSetSpec) ([]byte, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the spec: %w", err)
	}
	var whole map[string]any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, fmt.Errorf("encoding the spec: %w", err)
	}
	kept := map[string]any{"$patch": "replace"}
	for _, part := range recordedFields() {
		kept[part] = whole[part]
	}
	return json.Marshal(map[string]any{"spec": kept}) // keys are sorted, so equal specs give equal bytes
}

// ApplyRevision returns the spec of a SidecarSet with the parts that a revision has.
func ApplyRevision(spec *kruise.SidecarSetSpec, revision *appsv1.ControllerRevision) (*kruise.SidecarSetSpec, error) {
	var data struct {
		Spec kruise.SidecarSetSpec `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", revision.Name, err)
	}
	if len(data.Spec.Containers)+len(data.Spec.InitContainers) == 0 {
		return nil, fmt.Errorf("reading revision %s: it has no containers", revision.Name)
	}
	out := spec.DeepCopy()
	out.Containers, out.InitContainers, out.Volumes = data.Spec.Containers, data.Spec.InitContainers, data.Spec.Volumes
	out.ImagePullSecrets, out.PatchPodMetadata = data.Spec.ImagePullSecrets, data.Spec.PatchPodMetadata
	return out, nil
}

// List returns the revisions of a SidecarSet, oldest first.
func List(ctx context.Context, reader client.Reader, namespace, set string) ([]*appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{kruise.SidecarSetNameKey: set}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	out := make([]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortStableFunc(out, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return out, nil
}

// LatestRevisionName returns the name of the revision of a SidecarSet as it is now. The status names it once the controller has observed the spec.
// Until then it is the revision with the same data as the spec, or else the name that the controller is going to give it.
func LatestRevisionName(ctx context.Context, reader client.Reader, namespace string, set *kruise.SidecarSet) (string, error) {
	if set.Status.ObservedGeneration == set.Generation {
		return set.Status.LatestRevision, nil
	}
	data, err := EncodeSpec(&set.Spec)
	if err != nil {
		return "", err
	}
	all, err := List(ctx, reader, namespace, set.Name)
	if err != nil {
		return "", err
	}
	is := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}
	for i := len(all) - 1; i >= 0; i-- {
		if revision.EqualData(all[i], is) {
			return all[i].Name, nil
		}
	}
	for collisions := ptr.Deref(set.Status.CollisionCount, 0); ; collisions++ {
		name := set.Name + "-" + revision.HashData(data, collisions)
		if !slices.ContainsFunc(all, func(r *appsv1.ControllerRevision) bool { return r.Name == name }) {
			return name, nil
		}
	}
}

// MatchesRevision reports whether an injection strategy names a revision.
func MatchesRevision(want *kruise.SidecarSetInjectRevision, revision *appsv1.ControllerRevision) bool {
	if want == nil {
		return false
	}
	version := ptr.Deref(want.CustomVersion, "")
	return version != "" && revision.Labels[kruise.SidecarSetCustomVersionKey] == version || revision.Name == ptr.Deref(want.RevisionName, "")
}

// FindRevision returns the revision that an injection strategy names: the newest with its version, or else the one with its name. It returns
// nil if no revision matches (SS-03).
func FindRevision(all []*appsv1.ControllerRevision, want *kruise.SidecarSetInjectRevision) *appsv1.ControllerRevision {
	if want == nil {
		return nil
	}
	var byName *appsv1.ControllerRevision
	for i := len(all) - 1; i >= 0; i-- {
		switch version := ptr.Deref(want.CustomVersion, ""); {
		case version != "" && all[i].Labels[kruise.SidecarSetCustomVersionKey] == version:
			return all[i]
		case all[i].Name == ptr.Deref(want.RevisionName, ""):
			byName = all[i]
		}
	}
	return byName
}
