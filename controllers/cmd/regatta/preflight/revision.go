// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revision is a revision of a release, as the labels of its secret describe it.
type revision struct {
	number int
	status string
}

// chooseRevision returns the revision whose values an upgrade keeps, as Helm chooses it, and why Helm refuses an upgrade; both are empty if
// there is no revision.
func chooseRevision(revisions []revision) (chosen *revision, refusal string) {
	if len(revisions) == 0 {
		return nil, ""
	}
	slices.SortFunc(revisions, func(a, b revision) int { return b.number - a.number })
	last := &revisions[0]
	switch last.status {
	case "pending-install", "pending-upgrade", "pending-rollback":
		refusal = "refused: another operation is in progress"
	}
	for i := range revisions {
		if revisions[i].status == "deployed" {
			return &revisions[i], refusal
		}
	}
	if last.status == "failed" || last.status == "superseded" {
		return last, refusal
	}
	if refusal == "" {
		refusal = "refused: it has no deployed revision"
	}
	return nil, refusal
}

// readRevision reads the values of the release, and reports a state that Helm refuses. It returns false if no values can be read.
func (l *look) readRevision(ctx context.Context, object string) (bool, error) {
	labels := client.MatchingLabels{"owner": "helm", "name": l.release.name}
	kept := &metav1.PartialObjectMetadataList{} // metadata only: each secret has the whole chart in it
	kept.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := l.List(ctx, kept, client.InNamespace(l.release.namespace), labels); err != nil {
		return false, err
	}
	var revisions []revision
	for i := range kept.Items {
		if number, err := strconv.Atoi(kept.Items[i].Labels["version"]); err == nil {
			revisions = append(revisions, revision{number, kept.Items[i].Labels["status"]})
		}
	}
	chosen, refusal := chooseRevision(revisions)
	if refusal != "" {
		last := revisions[0]
		l.addRow(Row{Effect: Blocks, Object: object, Field: fmt.Sprintf("revision %d", last.number), There: last.status, Here: refusal,
			Do: fmt.Sprintf("wait for Helm where it still runs; else helm history %s --namespace %s, and helm rollback to a revision that was deployed", quoteForShell(l.release.name), quoteForShell(l.release.namespace))})
	}
	if chosen == nil {
		return false, nil
	}
	labels["version"] = strconv.Itoa(chosen.number)
	secrets := &corev1.SecretList{}
	if err := l.List(ctx, secrets, client.InNamespace(l.release.namespace), labels); err != nil || len(secrets.Items) == 0 {
		return false, err
	}
	var err error
	if l.release.values, err = decodeRelease(secrets.Items[0].Data["release"]); err != nil {
		return false, fmt.Errorf("reading release %s: %w", l.release.name, err)
	}
	return true, nil
}

// mostOfRelease is how many bytes an unpacked release may have. A secret has 1 MiB at most, but can unpack to a thousand times that.
const mostOfRelease = 64 << 20

// decodeRelease reads the values of a release from the secret that Helm keeps it in: JSON, with
// gzip, in base64.
func decodeRelease(data []byte) (map[string]any, error) {
	zipped, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, fmt.Errorf("decoding it: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, mostOfRelease+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	if len(text) > mostOfRelease {
		return nil, fmt.Errorf("unpacking it: it has more than %d MiB", mostOfRelease>>20)
	}
	var kept struct {
		Config map[string]any `json:"config"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("parsing it: %w", err)
	}
	return kept.Config, nil
}
