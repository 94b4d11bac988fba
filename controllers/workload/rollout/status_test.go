package rollout

import (
	"encoding/json"
	"errors"
	"testing"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestFailures(t *testing.T) {
	scale := &PhaseError{PhaseScale, errors.New("x")}
	update := &PhaseError{PhaseUpdate, errors.New("y")}
	if got := failures(errors.Join(update, errors.Join(scale, errors.New("z")))); len(got) != 2 || got[0] != update || got[1] != scale {
		t.Errorf("the phases that failed are %v", got)
	}
	if got := failures(nil); len(got) != 0 {
		t.Errorf("without an error they are %v", got)
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
