// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/workload/ordinals"
	"github.com/regatta-sh/regatta/test/terminal"
)

// kindOf is the kind that a word names.
func kindOf(t *testing.T, word string) edit.Kind {
	t.Helper()
	for _, k := range edit.SelectKinds(func(k edit.Kind) bool { return k.IsNamed(word) }) {
		return k
	}
	t.Fatalf("there is no kind %q", word)
	return edit.Kind{}
}

func TestFieldsOfWrongTypesAreNamed(t *testing.T) {
	reserve := func(t *testing.T, object *unstructured.Unstructured) error {
		_, err := (&scaleDown{pods: []string{"web-0"}}).changeObject(t.Context(), kindOf(t, "asts"), object, nil)
		return err
	}
	toDelete := func(t *testing.T, object *unstructured.Unstructured) error {
		_, err := (&scaleDown{}).changeObject(t.Context(), kindOf(t, "clone"), object, nil)
		return err
	}
	partition := func(word string) func(*testing.T, *unstructured.Unstructured) error {
		return func(t *testing.T, object *unstructured.Unstructured) error {
			return setPartition(kindOf(t, word), object, int64(3))
		}
	}
	subset := func(t *testing.T, object *unstructured.Unstructured) error {
		return setSubsetPartitions(kindOf(t, "ud"), object, []subsetPartition{{"a", 1}})
	}
	scale := func(t *testing.T, object *unstructured.Unstructured) error {
		return (&scaling{current: 1}).checkConditions(kindOf(t, "clone"), object)
	}
	united := "template: {cloneSetTemplate: {spec: {template: {spec: {}}}}}"
	for _, tc := range []struct {
		do         func(*testing.T, *unstructured.Unstructured) error
		spec, want string
	}{
		{reserve, "{reserveOrdinals: {}}", "spec.reserveOrdinals is an object; it must be a list"},
		{reserve, "{reserveOrdinals: [1, [2]]}", "spec.reserveOrdinals[1] is a list; it must be a number or a range such as 5-9"},
		{reserve, "{reserveOrdinals: [1.5]}", "spec.reserveOrdinals[0] is a number; it must be a number or a range such as 5-9"},
		{reserve, "{ordinals: {start: x}}", "reading spec.ordinals.start: .spec.ordinals.start accessor error: x is of the type string, expected int64"},
		{reserve, "{ordinals: [3]}", "reading spec.ordinals.start: .spec.ordinals.start accessor error: [3] is of the type []interface {}, expected map[string]interface{}"},
		{reserve, "{replicas: x}", "reading spec.replicas: .spec.replicas accessor error: x is of the type string, expected int64"},
		{reserve, "{replicas: -3}", "pod web-0 is beyond the ordinals of Advanced StatefulSet web: spec.replicas is -3 and the first ordinal is 0; no pod is deleted"},
		{reserve, "5", "reading spec.reserveOrdinals: .spec.reserveOrdinals accessor error: 5 is of the type int64, expected map[string]interface{}"},
		{toDelete, "{scaleStrategy: {podsToDelete: x}}", "reading spec.scaleStrategy.podsToDelete: .spec.scaleStrategy.podsToDelete accessor error: x is of the type string, expected []interface{}"},
		{toDelete, "{scaleStrategy: {podsToDelete: [5]}}", "reading spec.scaleStrategy.podsToDelete: .spec.scaleStrategy.podsToDelete accessor error: contains non-string key in the slice: 5 is of the type int64, expected string"},
		{toDelete, "{scaleStrategy: x}", "reading spec.scaleStrategy.podsToDelete: .spec.scaleStrategy.podsToDelete accessor error: x is of the type string, expected map[string]interface{}"},
		{partition("clone"), "{updateStrategy: x}", "reading spec.updateStrategy.type: .spec.updateStrategy.type accessor error: x is of the type string, expected map[string]interface{}"},
		{partition("clone"), "{updateStrategy: {type: 5}}", "reading spec.updateStrategy.type: .spec.updateStrategy.type accessor error: 5 is of the type int64, expected string"},
		{partition("clone"), "{updateStrategy: {rollingUpdate: x}}", "reading spec.updateStrategy.rollingUpdate.partition: .spec.updateStrategy.rollingUpdate.partition accessor error: x is of the type string, expected map[string]interface{}"},
		{partition("clone"), "{updateStrategy: {rollingUpdate: {partition: {x: y}}}}", ""},
		{partition("sidecarset"), "{updateStrategy: {type: NotUpdate}, injectionStrategy: {revision: x}}", "reading spec.injectionStrategy.revision.policy: .spec.injectionStrategy.revision.policy accessor error: x is of the type string, expected map[string]interface{}"},
		{subset, "{updateStrategy: {type: [x]}}", "reading spec.updateStrategy.type: .spec.updateStrategy.type accessor error: [x] is of the type []interface {}, expected string"},
		{subset, "{updateStrategy: {type: Automatic}}", "spec.updateStrategy.type is Automatic, so the partitions have no effect; set Manual first"},
		{subset, "{template: x}", "UnitedDeployment web has no pod spec at spec.template.cloneSetTemplate.spec.template.spec or spec.template.advancedStatefulSetTemplate.spec.template.spec or " +
			"spec.template.statefulSetTemplate.spec.template.spec or spec.template.deploymentTemplate.spec.template.spec"},
		{subset, "{" + united + ", topology: x}", "reading spec.topology.subsets: .spec.topology.subsets accessor error: x is of the type string, expected map[string]interface{}"},
		{subset, "{" + united + ", topology: {subsets: x}}", "spec.topology.subsets is a string; it must be a list"},
		{subset, "{" + united + ", topology: {subsets: [x]}}", "spec.topology.subsets[0].name is missing or no string"},
		{subset, "{" + united + ", topology: {subsets: [{name: b}, {name: [a]}]}}", "spec.topology.subsets[1].name is missing or no string"},
		{subset, "{" + united + "}", "spec.topology.subsets has no a; it has none"},
		{subset, "{" + united + ", topology: {subsets: [{name: a}]}, updateStrategy: {manualUpdate: {partitions: [x]}}}", "reading spec.updateStrategy.manualUpdate.partitions.a: .spec.updateStrategy.manualUpdate.partitions.a accessor error: [x] is of the type []interface {}, expected map[string]interface{}"},
		{subset, "{" + united + ", topology: {subsets: [{name: a}]}, updateStrategy: {manualUpdate: {partitions: {a: {}}}}}", ""},
		{scale, "{replicas: []}", "reading spec.replicas: .spec.replicas accessor error: [] is of the type []interface {}, expected int64"},
		{scale, "[]", "reading spec.replicas: .spec.replicas accessor error: [] is of the type []interface {}, expected map[string]interface{}"},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			err := tc.do(t, terminal.ParseObject(t, "{apiVersion: v1, kind: X, metadata: {name: web}, spec: "+tc.spec+"}"))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOrdinalsAreThoseOfTheController(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start, replicas := rapid.Int64Range(0, 5).Draw(t, "start"), rapid.Int64Range(0, 10).Draw(t, "replicas")
		var list []any
		var entries []intstr.IntOrString
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			from, to := rapid.IntRange(0, 20).Draw(t, "from"), rapid.IntRange(0, 20).Draw(t, "to")
			text := rapid.SampledFrom([]string{"", fmt.Sprint(from), fmt.Sprintf("%d-%d", from, to), "x", "3-", "-3"}).Draw(t, "text")
			if text == "" {
				list, entries = append(list, int64(from)), append(entries, intstr.FromInt(from))
			} else {
				list, entries = append(list, text), append(entries, intstr.FromString(text))
			}
		}
		reserved, err := readReserved(list, "x")
		if err != nil {
			t.Fatal(err)
		}
		theirs := ordinals.NewRange(int(start), int(replicas), entries)
		for n := range 40 {
			if got, want := isWanted(int64(n), start, replicas, reserved), theirs.HasOrdinal(n); got != want {
				t.Errorf("ordinal %d of %d replicas from %d without %v: %v, want %v", n, replicas, start, list, got, want)
			}
		}
	})
}
