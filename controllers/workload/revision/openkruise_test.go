// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// A revision that this package makes is byte for byte the one that OpenKruise makes
// of the same workload: whichever of the two runs next finds its template unchanged.
func TestRevisionsAreThoseOfOpenKruise(t *testing.T) {
	raw, err := os.ReadFile("testdata/openkruise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workloads []struct {
		Kind, Name string
		Claims     []corev1.PersistentVolumeClaim
		Template   corev1.PodTemplateSpec
		Revision   appsv1.ControllerRevision
	}
	if err := yaml.Unmarshal(raw, &workloads); err != nil {
		t.Fatal(err)
	}
	if len(workloads) < 6 {
		t.Fatalf("there are %d", len(workloads))
	}
	for _, w := range workloads {
		t.Run(w.Revision.Name, func(t *testing.T) {
			data, err := EncodeTemplate(&w.Template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(w.Revision.Data.Raw), string(data)); diff != "" {
				t.Errorf("the data differ: %s", diff)
			}
			if name := w.Name + "-" + HashData(data, 0); name != w.Revision.Name {
				t.Errorf("its name is %s", name)
			}
			if want, ok := w.Revision.Annotations[ClaimsHashKey]; ok {
				if got, err := ClaimsHash(w.Claims); err != nil || got != want {
					t.Errorf("the claims hash is %q, want %q: %v", got, want, err)
				}
			}
		})
	}
}

func TestEachTemplateWithinATemplateHasItsTimestamp(t *testing.T) {
	template := template("web:1")
	template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
	}}, {Name: "plain"}}
	raw, err := EncodeTemplate(template)
	if err != nil {
		t.Fatal(err)
	}
	type metadata struct{ Metadata map[string]any }
	var doc struct {
		Spec struct {
			Template struct {
				metadata
				Spec struct {
					Volumes []struct {
						Ephemeral struct{ VolumeClaimTemplate metadata }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, m := range []metadata{doc.Spec.Template.metadata, doc.Spec.Template.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate} {
		if v, ok := m.Metadata["creationTimestamp"]; !ok || v != nil {
			t.Errorf("%v in %s", m, raw)
		}
	}
}
