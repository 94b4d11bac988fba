// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// hashLabel is the label of a revision whose value is its hash.
const hashLabel = "controller.kubernetes.io/hash"

// document is the data of a revision. If it is applied as a strategic merge patch, the directive
// replaces the whole template.
type document struct {
	Spec struct {
		Template map[string]json.RawMessage `json:"template"`
	} `json:"spec"`
}

// encodeTemplate returns the data of the revision of a template.
func encodeTemplate(t *kruise.SubsetTemplate) ([]byte, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	var d document
	if err := json.Unmarshal(raw, &d.Spec.Template); err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	d.Spec.Template["$patch"] = json.RawMessage(`"replace"`)
	return json.Marshal(d)
}

// isSameTemplate compares the data of revisions by the meaning of the templates. OpenKruise omits other empty
// fields, and no pod is to be updated because a cluster changes from OpenKruise to Regatta.
func isSameTemplate(a, b []byte) bool {
	x, errX := decodeTemplate(a)
	y, errY := decodeTemplate(b)
	return errX == nil && errY == nil && equality.Semantic.DeepEqual(x, y)
}

func decodeTemplate(raw []byte) (*kruise.SubsetTemplate, error) {
	var d struct {
		Spec struct {
			Template kruise.SubsetTemplate `json:"template"`
		} `json:"spec"`
	}
	err := json.Unmarshal(raw, &d)
	return &d.Spec.Template, err
}

// resolveRevisions finds or creates the revision of the template.
func (r *Reconciler) resolveRevisions(ctx context.Context, d *kruise.UnitedDeployment) (revision.History, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingFields{rollout.OwnerIndex: string(d.UID)}); err != nil {
		return revision.History{}, fmt.Errorf("listing revisions: %w", err)
	}
	existing := make([]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		existing[i] = &list.Items[i]
	}
	data, err := encodeTemplate(&d.Spec.Template)
	if err != nil {
		return revision.History{}, err
	}
	return revision.ResolveHistory(ctx, r.Client, revision.Owner{
		Object: d, Kind: OwnerKind(), Collisions: ptr.Deref(d.Status.CollisionCount, 0), Current: d.Status.CurrentRevision, Live: r.Live,
		Document: &revision.Document{Data: data, Namespace: d.Namespace, HashLabel: hashLabel, Bare: true, Same: isSameTemplate},
	}, existing)
}
