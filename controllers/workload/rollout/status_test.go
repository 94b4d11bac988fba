// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestFailures(t *testing.T) {
	scale := &PhaseError{PhaseScale, errors.New("x")}
	update := &PhaseError{PhaseUpdate, errors.New("y")}
	if got := (Result{Err: errors.Join(update, errors.Join(scale, errors.New("z")))}).FailedPhases(); len(got) != 2 || got[0] != update || got[1] != scale {
		t.Errorf("the phases that failed are %v", got)
	}
	if got := (Result{}).FailedPhases(); len(got) != 0 {
		t.Errorf("without an error they are %v", got)
	}
}

func TestAPhaseSucceeds(t *testing.T) {
	race := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-a", errors.New("another version"))
	looked := Decisions{Looked: true}
	for name, tc := range map[string]struct {
		res           Result
		scale, update bool
	}{
		"both, without an error":                {Result{Decisions: looked}, true, true},
		"scaling, in a round that only scaled":  {Result{}, true, false},
		"scaling, where the update failed":      {Result{Decisions: looked, Err: errors.Join(&PhaseError{PhaseUpdate, errors.New("x")})}, true, false},
		"updating, where scaling failed":        {Result{Decisions: looked, Err: errors.Join(&PhaseError{PhaseScale, errors.New("x")})}, false, true},
		"neither, where the update lost a race": {Result{Err: errors.Join(&PhaseError{PhaseUpdate, race}, &PhaseError{PhaseScale, race})}, false, false},
	} {
		if tc.res.PhaseSucceeded(PhaseScale) != tc.scale || tc.res.PhaseSucceeded(PhaseUpdate) != tc.update || tc.res.PhaseSucceeded("Progressing") {
			t.Errorf("%s: scaling %t, updating %t", name, tc.res.PhaseSucceeded(PhaseScale), tc.res.PhaseSucceeded(PhaseUpdate))
		}
	}
}

func TestAStatusPatchHasTheCountsThatAreNone(t *testing.T) {
	raw, err := statusPatch("u", &kruise.CloneSetStatus{UpdatedAvailableReplicas: 3, Replicas: 3}, &kruise.CloneSetStatus{UpdateRevision: "b"})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata map[string]any `json:"metadata"`
		Status   map[string]any `json:"status"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if n, ok := got.Status["replicas"]; !ok || n != float64(0) {
		t.Errorf("replicas are %v", n)
	}
	if n, ok := got.Status["updatedAvailableReplicas"]; !ok || n != nil {
		t.Errorf("what is not there any more is not taken off: %v", n)
	}
	if got.Metadata["uid"] != "u" {
		t.Error("it may be the status of another CloneSet of that name")
	}
}
