// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
)

// labelled is true for objects, as they are stored, that have labels.
func labelled(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("oldObject.metadata.?labels[%s].orValue('') == %s", expression.Literal(key), expression.Literal(labels[key])))
		if labels[key] == "" { // a label that is empty, not one that is not there
			parts = append(parts, fmt.Sprintf("oldObject.metadata.?labels[%s].hasValue()", expression.Literal(key)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return expression.All(parts...)
}

// alive is true for objects that are not on their way out: their protection is
// over, and who ends them must not be kept from it.
const alive = "!has(oldObject.metadata.deletionTimestamp)"

const (
	subresource = "request.?subResource.orValue('')"
	namespace   = "request.?namespace.orValue('')"
)
