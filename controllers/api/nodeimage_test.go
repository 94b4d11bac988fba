// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestANodeIsAskedForNoMoreThan256Images(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for n, want := range map[int]string{256: "", 257: "must have at most 256 items"} {
			images := map[string]any{}
			for i := range n {
				images[fmt.Sprintf("image-%d", i)] = map[string]any{"tags": []any{}}
			}
			got := validate(t, "apps.kruise.io_nodeimages.yaml", version, map[string]any{
				"apiVersion": "apps.kruise.io/" + version, "kind": "NodeImage",
				"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"images": images},
			})
			if (len(got) > 0) != (want != "") || len(got) > 0 && !strings.Contains(got.ToAggregate().Error(), want) {
				t.Errorf("%d images in %s: %v", n, version, got)
			}
		}
	}
}
