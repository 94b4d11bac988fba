// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzContentsOfJSON(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"data":{"a":null,"b":1,"c":"eA=="},"stringData":{"d":[]}}`)
	f.Fuzz(func(_ *testing.T, text string) { ContentsOfJSON([]byte(text)) })
}
