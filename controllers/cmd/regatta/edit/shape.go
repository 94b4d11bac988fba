// SPDX-License-Identifier: Apache-2.0

package edit

// DescribeType names the type of a value of an unstructured object as JSON does.
func DescribeType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "a number"
}
