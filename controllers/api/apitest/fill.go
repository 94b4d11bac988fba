// SPDX-License-Identifier: Apache-2.0

// Package apitest fills objects of the API with content of all kinds, also silly ones, for tests.
package apitest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// New returns a filler whose objects are the same for the same seed, and survive JSON. Times and IntOrStrings know how to
// fill themselves. A later call of Funcs replaces the function of a type.
func New(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 2).Funcs(
		func(in *metav1.TypeMeta, _ randfill.Continue) { *in = metav1.TypeMeta{} },
		fillMeta,
		func(in *metav1.LabelSelector, c randfill.Continue) {
			c.Fill(&in.MatchLabels)
			c.Fill(&in.MatchExpressions)
		},
		func(in *resource.Quantity, c randfill.Continue) {
			*in = *resource.NewMilliQuantity(c.Int63n(1_000_000), resource.DecimalSI)
		},
		func(in *runtime.RawExtension, c randfill.Continue) {
			if c.Intn(4) == 0 {
				*in = runtime.RawExtension{}
				return
			}
			object := map[string]any{c.String(10): c.String(10), "count": c.Intn(100), "list": []any{c.Bool(), nil, c.String(5)}}
			if c.Bool() {
				object["metadata"] = map[string]any{"name": c.String(10)}
			}
			// Strings, numbers and booleans are JSON without exception.
			in.Raw, _ = json.Marshal(object)
		},
	)
}

func fillMeta(in *metav1.ObjectMeta, c randfill.Continue) {
	*in = metav1.ObjectMeta{
		Name: c.String(20), Namespace: c.String(20), ResourceVersion: strconv.Itoa(c.Intn(1000)), Generation: c.Int63(),
		CreationTimestamp: metav1.Unix(c.Int63n(1<<32), 0),
	}
	c.Fill(&in.Labels)
	c.Fill(&in.Annotations)
	c.Fill(&in.Finalizers)
	c.Fill(&in.OwnerReferences)
}

// NewWithAnnotations fills as New does, but that annotations of these keys have one of these texts in half of the cases. The functions
// are for types that conversions have an eye on.
func NewWithAnnotations(seed int64, texts map[string][]string, functions ...any) *randfill.Filler {
	filler := New(seed)
	meta := func(in *metav1.ObjectMeta, c randfill.Continue) {
		fillMeta(in, c)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if at := c.Intn(2 * len(texts[key])); at < len(texts[key]) {
				conversiondata.SetMetadata(&in.Annotations, key, texts[key][at])
			}
		}
	}
	return filler.Funcs(append([]any{meta}, functions...)...)
}

// PickValue returns one of the values, or a random one. A property is to meet the values that its code has an eye on.
func PickValue(c randfill.Continue, values ...string) string {
	if at := c.Intn(len(values) + 1); at < len(values) {
		return values[at]
	}
	return c.String(30)
}
