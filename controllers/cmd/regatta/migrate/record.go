// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/regatta-sh/regatta/controllers/annotation"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// recordKey is an annotation of both workloads as long as a migration is under way.
const recordKey = "migrate.regatta.sh/record"

// record is the value of the annotation.
type record struct {
	// ID tells one migration from another one, such as that of a second run in the other direction.
	ID string `json:"id"`
	// To is the kind that the pods move to.
	To string `json:"to"`
	// Replicas is how many pods there are to be.
	Replicas int `json:"replicas"`
	// Template is the hash of the template of the workload that has the annotation, once the API server has set the defaults.
	Template string `json:"template,omitempty"`
}

// newRecord makes the record of a migration that begins.
func newRecord(to string, replicas int) record {
	return record{ID: string(uuid.NewUUID()), To: to, Replicas: replicas}
}

// readRecord reads the record of a workload; nil if it has none.
func readRecord(w workload) (*record, error) {
	text, ok := w.object.GetAnnotations()[recordKey]
	if !ok {
		return nil, nil
	}
	r, err := annotation.Decode[record](recordKey, text)
	if err != nil || r.ID == "" || r.Replicas < 0 {
		return nil, exit.RefusalErrorf("annotation %s of %s cannot be read; remove it if no migration is under way", recordKey, w)
	}
	return &r, nil
}

// writeRecord puts a record into a workload.
func writeRecord(w workload, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the annotation %s of %s: %w", recordKey, w, err)
	}
	annotations := keepAll(w.object.GetAnnotations())
	annotations[recordKey] = string(text)
	w.object.SetAnnotations(annotations)
	return nil
}

// hashTemplate returns a hash of the template of a workload.
func hashTemplate(w workload) (string, error) {
	raw, err := json.Marshal(w.podTemplate())
	if err != nil {
		return "", fmt.Errorf("reading the template of %s: %w", w, err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// checkID returns an error if a workload is no longer part of a run.
func checkID(w workload, id string) error {
	r, err := readRecord(w)
	if err == nil && (r == nil || r.ID != id) {
		err = exit.RefusalErrorf("another run of the command has taken over: annotation %s of %s is another one", recordKey, w)
	}
	return err
}

// checkTemplate returns an error if a workload that has a record has another template since that was written.
func checkTemplate(w workload) error {
	r, err := readRecord(w)
	if err != nil || r == nil || r.Template == "" {
		return err
	}
	hash, err := hashTemplate(w)
	if err != nil {
		return err
	}
	if r.Template != hash {
		return exit.RefusalErrorf("the template of %s was changed since the migration began, and the pods of the other workload have the old one; undo that change", w)
	}
	return nil
}
