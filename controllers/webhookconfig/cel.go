// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
)

// labelsCondition is true for stored objects that have the labels.
func labelsCondition(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("oldObject.metadata.?labels[%s].orValue('') == %s", expression.TextLiteral(key), expression.TextLiteral(labels[key])))
		if labels[key] == "" { // a label that is empty, not one that is not there
			parts = append(parts, fmt.Sprintf("oldObject.metadata.?labels[%s].hasValue()", expression.TextLiteral(key)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return expression.AllOf(parts...)
}

// alive is true for objects that are not being deleted: the protection of the others is over, and
// clients that complete their deletion must not be blocked.
const alive = "!has(oldObject.metadata.deletionTimestamp)"

const (
	subresource = "request.?subResource.orValue('')"
	namespace   = "request.?namespace.orValue('')"
)
