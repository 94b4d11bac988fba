// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// decodeTree decodes JSON to maps, lists and scalars. Numbers keep their digits.
func decodeTree(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	err := d.Decode(&out)
	return out, err
}

// findValue returns the value at a path, false if there is none. A null is no value.
func findValue(tree any, steps []step) (any, bool) {
	for _, s := range steps {
		switch at := tree.(type) {
		case map[string]any:
			if s.isList {
				return nil, false
			}
			tree = at[s.name]
		case []any:
			if !s.isList || s.index >= len(at) {
				return nil, false
			}
			tree = at[s.index]
		default:
			return nil, false
		}
	}
	return tree, tree != nil
}

// setValue returns the tree with a value at a path. Objects and lists that are missing on the way are made. An index may be
// that of an element or the next one.
func setValue(tree any, steps []step, value any) (any, error) {
	return editTree(tree, steps, 0, func(any) any { return value }, false)
}

// removeValue returns the tree without the value at a path. Where there is none, nothing changes.
func removeValue(tree any, steps []step) (any, error) {
	if _, ok := findValue(tree, steps); !ok {
		return tree, nil
	}
	return editTree(tree, steps, 0, nil, true)
}

func editTree(tree any, steps []step, i int, edit func(any) any, remove bool) (any, error) {
	if i == len(steps) {
		return edit(tree), nil
	}
	s, last := steps[i], i == len(steps)-1
	if !s.isList {
		at, ok := tree.(map[string]any)
		if tree != nil && !ok {
			return nil, fmt.Errorf("%s is in something that is no object", joinPath(steps[:i+1]))
		}
		if remove && last {
			delete(at, s.name)
			return at, nil
		}
		below, err := editTree(at[s.name], steps, i+1, edit, remove)
		if err != nil {
			return nil, err
		}
		if at == nil {
			at = map[string]any{}
		}
		at[s.name] = below
		return at, nil
	}
	at, ok := tree.([]any)
	switch {
	case tree != nil && !ok:
		return nil, fmt.Errorf("%s is in something that is no list", joinPath(steps[:i+1]))
	case s.index > len(at):
		return nil, fmt.Errorf("%s: the list has %d elements, so the index is at most %d", joinPath(steps[:i+1]), len(at), len(at))
	case remove && last:
		return slices.Delete(at, s.index, s.index+1), nil
	case s.index == len(at):
		at = append(at, nil)
	}
	below, err := editTree(at[s.index], steps, i+1, edit, remove)
	at[s.index] = below
	return at, err
}
